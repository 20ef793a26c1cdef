#pragma optiml launch block_softmax grid(rows) block(128)
__device__ float over_block(float value, float* parts, bool adds) {
    for (int d = 16; d > 0; d /= 2) {
        float other = __shfl_xor_sync(0xffffffff, value, d);
        value = adds ? value + other : fmaxf(value, other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int w = 1; w < 4; ++w) value = adds ? value + parts[w] : fmaxf(value, parts[w]);
    return value;
}

__global__ void block_softmax(const float* x, float* out, int rows, int cols) {
    __shared__ float parts[4];
    const float* mine = x + blockIdx.x * cols;
    float most = -INFINITY;
    for (int c = threadIdx.x; c < cols; c += 128) most = fmaxf(most, mine[c]);
    most = over_block(most, parts, false);
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 128) sum += expf(mine[c] - most);
    sum = over_block(sum, parts, true);
    for (int c = threadIdx.x; c < cols; c += 128) out[blockIdx.x * cols + c] = expf(mine[c] - most) / sum;
}
