// a block a row; each thread a part of the sums, and one thread adds the parts
#pragma optiml launch block_norm grid(rows) block(256)
__global__ void block_norm(const float* x, const float* gain, float* y, int cols) {
    __shared__ float part[256];
    __shared__ float mean, scale;
    int row = blockIdx.x;
    float s = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) s += x[row * cols + c];
    part[threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0.0f;
        for (int i = 0; i < 256; i++) t += part[i];
        mean = t / cols;
    }
    __syncthreads();
    s = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        float d = x[row * cols + c] - mean;
        s += d * d;
    }
    part[threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0.0f;
        for (int i = 0; i < 256; i++) t += part[i];
        scale = rsqrtf(t / cols + 1e-5f);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        y[row * cols + c] = (x[row * cols + c] - mean) * scale * gain[c];
}
