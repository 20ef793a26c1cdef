#pragma optiml launch row_prefix grid(cdiv(rows, 32)) block(32)
__global__ void row_prefix(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float running = 0.0f;
    for (int col = 0; col < cols; ++col) {
        running = running + a[row * cols + col];
        out[row * cols + col] = running;
    }
}
