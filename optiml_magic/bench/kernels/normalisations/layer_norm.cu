#pragma optiml launch layer_norm grid(cdiv(rows, 256)) block(256)
__global__ void layer_norm(const float* x, const float* gamma, const float* beta, float* out,
                           int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* in = x + row * cols;
    float* result = out + row * cols;
    float mean = 0.0f;
    for (int j = 0; j < cols; j++) mean += in[j];
    mean /= cols;
    float variance = 0.0f;
    for (int j = 0; j < cols; j++) {
        float d = in[j] - mean;
        variance += d * d;
    }
    variance /= cols;
    float scale = 1.0f / sqrtf(variance + 1e-5f);
    for (int j = 0; j < cols; j++) {
        result[j] = (in[j] - mean) * scale * gamma[j] + beta[j];
    }
}
