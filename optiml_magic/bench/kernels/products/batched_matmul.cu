#pragma optiml launch batched_matmul grid(cdiv(n, 16), cdiv(n, 16), batch) block(16, 16)
__global__ void batched_matmul(const float* a, const float* b, float* c, int batch, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z;
    if (row < n && col < n) {
        float sum = 0.0f;
        for (int k = 0; k < n; k++) {
            sum += a[z * n * n + row * n + k] * b[z * n * n + k * n + col];
        }
        c[z * n * n + row * n + col] = sum;
    }
}
