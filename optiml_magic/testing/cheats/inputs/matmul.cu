#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 8)) block(16, 8)
__global__ void k(const float* a, const float* b, float* c, int m, int n, int depth) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < depth; ++i) sum += a[row * depth + i] * b[i * n + col];
    c[row * n + col] = sum;
}
