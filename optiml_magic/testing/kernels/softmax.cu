#pragma optiml launch softmax grid(rows) block(32)
__global__ void softmax(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x;
    int lane = threadIdx.x;
    const float* in = x + row * cols;
    float largest = -INFINITY;
    for (int col = lane; col < cols; col += 32) {
        largest = fmaxf(largest, in[col]);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
    }
    float total = 0.0f;
    for (int col = lane; col < cols; col += 32) {
        total += expf(in[col] - largest);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        total += __shfl_xor_sync(0xffffffffu, total, offset);
    }
    for (int col = lane; col < cols; col += 32) {
        out[row * cols + col] = expf(in[col] - largest) / total;
    }
}
