// Relies on the warps to run one after the other.
// task: neighbours
// row: 10
// rejected: wrong|race: 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    __shared__ float tile[257];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    if (i < n) tile[t] = x[i];
    if (t == 255 || i == n - 1) tile[t + 1] = x[(i + 1) % n];
    __syncthreads();  //+
    if (i < n) out[i] = tile[t] + tile[t + 1];
}
