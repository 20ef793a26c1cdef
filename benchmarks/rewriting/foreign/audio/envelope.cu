// Loudest sample of the last HOLD ones, for a limiter that looks back.
constexpr int HOLD = 64;

__global__ void peak_envelope(const float* __restrict__ signal, float* __restrict__ envelope, const int length)
{
    const int now = blockDim.x * blockIdx.x + threadIdx.x;
    if (now < length) {
        float peak = 0.0f;
        const int oldest = max(now - HOLD + 1, 0);
        for (int t = oldest; t <= now; ++t) {
            peak = fmaxf(peak, fabsf(signal[t]));
        }
        envelope[now] = peak;
    }
}
#pragma optiml launch peak_envelope grid(cdiv(length, 256)) block(256)
