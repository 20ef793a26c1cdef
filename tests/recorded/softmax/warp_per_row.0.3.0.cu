#pragma optiml launch warp_softmax grid(cdiv(rows, 4)) block(128)
__global__ void warp_softmax(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * 4 + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* mine = x + row * cols;
    float most = -INFINITY;
    for (int c = lane; c < cols; c += 32) most = fmaxf(most, mine[c]);
    for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, d));
    float sum = 0.0f;
    for (int c = lane; c < cols; c += 32) sum += expf(mine[c] - most);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    for (int c = lane; c < cols; c += 32) out[row * cols + c] = expf(mine[c] - most) / sum;
}
