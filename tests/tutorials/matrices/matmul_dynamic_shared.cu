extern __shared__ float smem[];

#pragma optiml launch matmul_smem grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16) shared(2 * 16 * 17 * 4)
__global__ void matmul_smem(const float *a, const float *b, float *c, const int n)
{
    const int T = blockDim.x;
    float *sa = smem;
    float *sb = &smem[T * (T + 1)];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * T + tx, y = blockIdx.y * T + ty;
    float sum = 0;
    for (int k0 = 0; k0 < n; k0 += T) {
        sa[ty * (T + 1) + tx] = (y < n && k0 + tx < n) ? a[y * n + k0 + tx] : 0;
        sb[ty * (T + 1) + tx] = (x < n && k0 + ty < n) ? b[(k0 + ty) * n + x] : 0;
        __syncthreads();
        for (int k = 0; k < T; k++) sum += sa[ty * (T + 1) + k] * sb[k * (T + 1) + tx];
        __syncthreads();
    }
    if (x < n && y < n) c[y * n + x] = sum;
}
