#pragma optiml launch sgemm_vectorised grid(n / 64, m / 16) block(16, 16)
__global__ void sgemm_vectorised(const float *A, const float *B, float *C, int m, int n, int k)
{
    // a row of A, four columns of B at a time
    int row = blockIdx.y * 16 + threadIdx.y;
    int col = (blockIdx.x * 16 + threadIdx.x) * 4;
    __shared__ float4 tile[16][16];
    float4 acc = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int base = 0; base < k; base += 16) {
        tile[threadIdx.y][threadIdx.x] = reinterpret_cast<const float4 *>(&B[(base + threadIdx.y) * n + col])[0];
        __syncthreads();
        for (int i = 0; i < 16; i += 4) {
            float4 a = *reinterpret_cast<const float4 *>(A + row * k + base + i);
            const float scale[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float4 b = tile[i + j][threadIdx.x];
                acc.x += scale[j] * b.x;
                acc.y += scale[j] * b.y;
                acc.z += scale[j] * b.z;
                acc.w += scale[j] * b.w;
            }
        }
        __syncthreads();
    }
    reinterpret_cast<float4 *>(C + row * n + col)[0] = acc;
}
