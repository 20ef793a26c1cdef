#pragma optiml launch bias_relu grid(cdiv(rows * cols, 64)) block(64)
__global__ void bias_relu(float* x, const float* bias, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) {
        int col = i % cols;
        float value = x[i] + bias[col];
        x[i] = value > 0.0f ? value : 0.0f;
    }
}
