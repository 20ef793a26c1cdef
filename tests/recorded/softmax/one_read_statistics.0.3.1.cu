#pragma optiml launch online_softmax grid(cdiv(rows, 64)) block(64)
__global__ void online_softmax(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= rows) return;
    float most = -INFINITY, sum = 0.0f;
    for (int c = 0; c < cols; ++c) {
        float value = x[row * cols + c];
        float higher = fmaxf(most, value);
        sum = sum * expf(most - higher) + expf(value - higher);
        most = higher;
    }
    for (int c = 0; c < cols; ++c) out[row * cols + c] = expf(x[row * cols + c] - most) / sum;
}
