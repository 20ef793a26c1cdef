// Cosine transforms of rows of 32 samples; a warp's rows lie in shared memory, each thread takes one.
#define N 32
#pragma optiml launch block_dct grid(cdiv(rows, 32)) block(32)
__global__ void block_dct(const float* in, const float* basis, float* out, int rows)
{
    __shared__ float part[N][N];
    __shared__ float table[N * N];
    int me = threadIdx.x;
    int row0 = blockIdx.x * N;
    for (int r = 0; r < N; ++r) {
        part[r][me] = row0 + r < rows ? in[(row0 + r) * N + me] : 0.0f;
        table[r * N + me] = basis[r * N + me];
    }
    __syncthreads();
    if (row0 + me < rows) {
        for (int k = 0; k < N; ++k) {
            float sum = 0.0f;
            for (int n = 0; n < N; ++n) sum += part[me][n] * table[k * N + n];
            out[k * rows + row0 + me] = sum;
        }
    }
}
