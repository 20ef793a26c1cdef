#pragma optiml launch row_sum grid(cdiv(rows, 32)) block(32)
__global__ void row_sum(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col) {
        sum += a[row * cols + col];
    }
    out[row] = sum;
}
