__device__ float cumulative(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float tail = 0.39894228040143267794f * expf(-0.5f * d * d) *
                 (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f +
                 k * (-1.821255978f + k * 1.330274429f)))));
    if (d > 0) tail = 1.0f - tail;
    return tail;
}

#pragma optiml launch black_scholes grid(cdiv(n, 256)) block(256)
__global__ void black_scholes(const float* price, const float* strike, const float* years,
                              float* call, float* put, float rate, float volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float s = price[i];
        float x = strike[i];
        float t = years[i];
        float root = sqrtf(t);
        float d1 = (logf(s / x) + (rate + 0.5 * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root;
        float discount = expf(-rate * t);
        float c1 = cumulative(d1);
        float c2 = cumulative(d2);
        call[i] = s * c1 - x * discount * c2;
        put[i] = x * discount * (1.0f - c2) - s * (1.0f - c1);
    }
}
