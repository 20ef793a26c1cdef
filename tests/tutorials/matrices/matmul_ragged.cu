template <typename scalar_t, int TILE>
__global__ void matmul_tiled(const scalar_t *__restrict__ a, const scalar_t *__restrict__ b,
                             scalar_t *__restrict__ c, int m, int n, int k)
{
    __shared__ scalar_t a_s[TILE][TILE];
    __shared__ scalar_t b_s[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int col = blockIdx.x * TILE + threadIdx.x;
    scalar_t acc = 0;
    for (int t = 0; t < (k + TILE - 1) / TILE; ++t) {
        const int ac = t * TILE + threadIdx.x, br = t * TILE + threadIdx.y;
        a_s[threadIdx.y][threadIdx.x] = (row < m && ac < k) ? a[row * k + ac] : scalar_t(0);
        b_s[threadIdx.y][threadIdx.x] = (br < k && col < n) ? b[br * n + col] : scalar_t(0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) acc += a_s[threadIdx.y][i] * b_s[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = acc;
}
#pragma optiml launch matmul_tiled<double, 8> grid(cdiv(n, 8), cdiv(m, 8)) block(8, 8)
