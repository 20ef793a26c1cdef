#pragma optiml launch softmax grid(cdiv(rows, 32)) block(32)
__global__ void softmax(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float largest = x[row * cols];
    for (int col = 0; col < cols; ++col) {
        float value = x[row * cols + col];
        if (value > largest) largest = value;
    }
    float total = 0.0f;
    for (int col = 0; col < cols; ++col) {
        total += expf(x[row * cols + col] - largest);
    }
    for (int col = 0; col < cols; ++col) {
        out[row * cols + col] = expf(x[row * cols + col] - largest) / total;
    }
}
