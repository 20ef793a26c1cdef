#pragma optiml launch doitgen grid(cdiv(np, 32), cdiv(nq, 8), nr) block(32, 8)
__global__ void doitgen(const float* a, const float* c4, float* sum, int nr, int nq, int np) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    int q = blockIdx.y * blockDim.y + threadIdx.y;
    int r = blockIdx.z;
    if (p < np && q < nq) {
        sum[r * nq * np + q * np + p] = 0.0f;
        for (int s = 0; s < np; s++) {
            sum[r * nq * np + q * np + p] += a[r * nq * np + q * np + s] * c4[s * np + p];
        }
    }
}
