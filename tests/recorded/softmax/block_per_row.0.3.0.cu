#pragma optiml launch block_softmax grid(rows) block(128)
__global__ void block_softmax(const float* x, float* out, int rows, int cols) {
    __shared__ float parts[4];
    const float* mine = x + blockIdx.x * cols;
    float most = -INFINITY;
    for (int c = threadIdx.x; c < cols; c += 128) most = fmaxf(most, mine[c]);
    most = block_max(most, parts);
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 128) sum += expf(mine[c] - most);
    sum = block_sum(sum, parts);
    for (int c = threadIdx.x; c < cols; c += 128) out[blockIdx.x * cols + c] = expf(mine[c] - most) / sum;
}
