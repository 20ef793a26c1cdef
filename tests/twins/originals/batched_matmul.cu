#pragma optiml launch batched_matmul grid(cdiv(n, 8), cdiv(n, 8), batches) block(8, 8)
__global__ void batched_matmul(const float* a, const float* b, float* c, int batches, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int batch = blockIdx.z;
    if (row >= n || col >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        sum = sum + a[(batch * n + row) * n + k] * b[(batch * n + k) * n + col];
    }
    c[(batch * n + row) * n + col] = sum;
}
