// Annual variance of assets: log returns first, then their squares summed up.
#pragma optiml scratch change f4[assets * (days - 1)]
#pragma optiml launch log_returns grid(cdiv(assets * (days - 1), 256)) block(256)
#pragma optiml launch realised grid(cdiv(assets, 64)) block(64)
__global__ void log_returns(const float* price, float* change, int assets, int days) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= assets * (days - 1)) return;
    int a = i / (days - 1), d = i % (days - 1);
    change[i] = logf(price[a * days + d + 1]) - logf(price[a * days + d]);
}
__global__ void realised(const float* change, float* variance, int assets, int days) {
    int a = blockIdx.x * blockDim.x + threadIdx.x;
    if (a >= assets) return;
    float sum = 0.0f;
    for (int d = 0; d < days - 1; ++d) {
        float c = change[a * (days - 1) + d];
        sum += c * c;
    }
    variance[a] = sum * 252.0f / (days - 1);
}
