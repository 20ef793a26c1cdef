// Implied volatility of an option in each scenario of a surface, by a smooth weight of its four strikes.
__host__ __device__ inline float smooth(float x) {
    x = x < 0.0f ? -x : x;
    if (x >= 2.0f) return 0.0f;
    float t = 1.0f - 0.5f * x;
    return t * t * t * sqrtf(t) * (1.0f + 1.5f * x);
}

#pragma optiml launch surface_shifts grid(cdiv(options, 128)) block(128)
__global__ void surface_shifts(const float* surface, const float* moneyness, float* vol, int options, int scenarios, int strikes) {
    int o = blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= options) return;
    float m = moneyness[o];
    int left = (int)m - 1;
    for (int s = 0; s < scenarios; ++s) {
        float v = 0.0f, norm = 0.0f;
        for (int k = 0; k < 4; ++k) {
            float w = smooth(m - (left + k));
            v += w * surface[s * strikes + left + k];
            norm += w;
        }
        vol[s * options + o] = v / norm;
    }
}
