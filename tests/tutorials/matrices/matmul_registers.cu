// Each thread computes a 4 x 4 patch of the 32 x 32 tile.
constexpr int BM = 32, BN = 32, BK = 8, TM = 4, TN = 4;

#pragma optiml require m % 32 == 0 && n % 32 == 0 && k % 8 == 0
#pragma optiml launch sgemm_2d_tiling grid(n / 32, m / 32) block(64)
__global__ void __launch_bounds__((BM * BN) / (TM * TN))
    sgemm_2d_tiling(const float *A, const float *B, float *C, float alpha, float beta, int m, int n, int k)
{
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    const int cRow = blockIdx.y, cCol = blockIdx.x;
    const int threadCol = threadIdx.x % (BN / TN), threadRow = threadIdx.x / (BN / TN);
    A += cRow * BM * k;
    B += cCol * BN;
    C += cRow * BM * n + cCol * BN;

    float results[TM * TN] = {0.0f};
    float regM[TM], regN[TN];
    for (int bkIdx = 0; bkIdx < k; bkIdx += BK) {
        for (int i = threadIdx.x; i < BM * BK; i += blockDim.x) As[i] = A[(i / BK) * k + i % BK];
        for (int i = threadIdx.x; i < BK * BN; i += blockDim.x) Bs[i] = B[(i / BN) * n + i % BN];
        __syncthreads();
        A += BK;
        B += BK * n;
        for (int dot = 0; dot < BK; ++dot) {
            for (int i = 0; i < TM; ++i) regM[i] = As[(threadRow * TM + i) * BK + dot];
            for (int i = 0; i < TN; ++i) regN[i] = Bs[dot * BN + threadCol * TN + i];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) results[i * TN + j] += regM[i] * regN[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int at = (threadRow * TM + i) * n + threadCol * TN + j;
            C[at] = alpha * results[i * TN + j] + beta * C[at];
        }
}
