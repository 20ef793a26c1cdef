// One block factors one small symmetric positive definite matrix in shared memory.
template <int N>
__global__ void cholesky(const float *a, float *l)
{
    __shared__ float s[N][N + 1];
    int col = threadIdx.x;
    const float *mine = a + blockIdx.x * N * N;
    for (int row = 0; row < N; ++row) s[row][col] = mine[row * N + col];
    __syncthreads();
    for (int k = 0; k < N; ++k) {
        if (col == k) {
            s[k][k] = sqrtf(s[k][k]);
            for (int i = k + 1; i < N; ++i) s[i][k] /= s[k][k];
        }
        __syncthreads();
        if (col > k)
            for (int i = col; i < N; ++i) s[i][col] -= s[i][k] * s[col][k];
        __syncthreads();
    }
    for (int row = 0; row < N; ++row) l[(blockIdx.x * N + row) * N + col] = row >= col ? s[row][col] : 0.0f;
}

#pragma optiml launch cholesky<12> grid(batch) block(12)
