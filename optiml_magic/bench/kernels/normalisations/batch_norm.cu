#pragma optiml scratch mean f4[channels]
#pragma optiml scratch variance f4[channels]
#pragma optiml launch statistics grid(channels) block(256)
#pragma optiml launch normalise grid(cdiv(images * channels * pixels, 256)) block(256)
// x is [images, channels, pixels]; a block a channel
__global__ void statistics(const float* x, float* mean, float* variance, int images, int channels,
                           int pixels) {
    __shared__ float sums[256];
    __shared__ float squares[256];
    int channel = blockIdx.x;
    float sum = 0.0f, square = 0.0f;
    for (int image = 0; image < images; image++) {
        for (int p = threadIdx.x; p < pixels; p += blockDim.x) {
            float v = x[(image * channels + channel) * pixels + p];
            sum += v;
            square += v * v;
        }
    }
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) {
            sums[threadIdx.x] += sums[threadIdx.x + s];
            squares[threadIdx.x] += squares[threadIdx.x + s];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        float m = sums[0] / (images * pixels);
        mean[channel] = m;
        variance[channel] = squares[0] / (images * pixels) - m * m;
    }
}

__global__ void normalise(const float* x, const float* mean, const float* variance,
                          const float* weight, const float* bias, float* out, int images,
                          int channels, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < images * channels * pixels) {
        int c = (i / pixels) % channels;
        out[i] = (x[i] - mean[c]) / sqrtf(variance[c] + 1e-5f) * weight[c] + bias[c];
    }
}
