// A block aligns two short reads; its threads walk along the diagonals of a table in shared memory.
#define LENGTH 64
#pragma optiml launch align_tile grid(pairs) block(LENGTH)
__global__ void align_tile(const unsigned char* a, const unsigned char* b, int* last, int gap, int pairs)
{
    __shared__ int h[LENGTH + 1][LENGTH + 1];
    int pair = blockIdx.x, t = threadIdx.x;
    h[0][t + 1] = (t + 1) * gap;
    h[t + 1][0] = (t + 1) * gap;
    if (t == 0) h[0][0] = 0;
    __syncthreads();
    for (int d = 0; d < 2 * LENGTH - 1; d++) {
        int j = d - t;
        if (j >= 0 && j < LENGTH) {
            int same = h[t][j] + (a[pair * LENGTH + t] == b[pair * LENGTH + j] ? 2 : -1);
            int most = max(same, max(h[t][j + 1], h[t + 1][j]) + gap);
            h[t + 1][j + 1] = most;
        }
        __syncthreads();
    }
    last[pair * LENGTH + t] = h[LENGTH][t + 1];
}
