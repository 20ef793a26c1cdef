#pragma optiml launch unit_rows grid(cdiv(rows, 4)) block(128)
__global__ void unit_rows(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * 4 + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int c = lane; c < cols; c += 32) sum += x[row * cols + c] * x[row * cols + c];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    float length = sqrtf(sum);
    for (int c = lane; c < cols; c += 32) out[row * cols + c] = length > 0.0f ? x[row * cols + c] / length : 0.0f;
}
