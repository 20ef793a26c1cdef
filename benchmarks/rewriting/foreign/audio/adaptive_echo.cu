// Normalised least mean squares: one line a thread, whose filter learns the echo as it goes.
template <int TAPS>
__device__ void clear(float (&w)[TAPS])
{
#pragma unroll
    for (int i = 0; i < TAPS; ++i) w[i] = 0.0f;
}

#pragma optiml launch cancel grid(cdiv(lines, 32)) block(32)
__global__ void cancel(const float *far_end, const float *microphone, float *clean, float rate, int lines, int length)
{
    const int line = blockIdx.x * 32 + threadIdx.x;
    if (line >= lines) return;
    const float *x = far_end + (size_t)line * (length + 31);
    const float *d = microphone + (size_t)line * length;
    float w[32];
    clear<32>(w);
    for (int t = 0; t < length; ++t) {
        float guess = 0.0f;
        for (int i = 0; i < 32; ++i) guess += w[i] * x[t + i];
        const float left = d[t] - guess;
        for (int i = 0; i < 32; ++i) w[i] += rate * left * x[t + i];
        clean[(size_t)line * length + t] = left;
    }
}
