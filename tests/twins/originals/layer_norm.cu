#pragma optiml launch layer_norm grid(cdiv(rows, 32)) block(32)
__global__ void layer_norm(const float* x, const float* gamma, const float* beta, float* out,
                           int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float mean = 0.0f;
        for (int col = 0; col < cols; ++col) {
            mean += x[row * cols + col];
        }
        mean = mean / cols;
        float variance = 0.0f;
        for (int col = 0; col < cols; ++col) {
            float diff = x[row * cols + col] - mean;
            variance += diff * diff;
        }
        variance = variance / cols;
        float scale = 1.0f / sqrtf(variance + 1e-5f);
        for (int col = 0; col < cols; ++col) {
            out[row * cols + col] = (x[row * cols + col] - mean) * scale * gamma[col] + beta[col];
        }
    }
}
