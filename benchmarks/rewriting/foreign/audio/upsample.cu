// From 16 kHz to 48 kHz: zeros between the samples, then a low pass; most taps meet a zero.
#define UP 3
#pragma optiml launch upsample grid(cdiv(3 * frames, 128)) block(128)
__global__ void upsample(const float *in, const float *taps, float *out, int frames, int ntaps)
{
    int n = threadIdx.x + blockIdx.x * blockDim.x;
    if (n >= UP * frames) return;
    float acc = 0.f;
    for (int k = 0; k < ntaps; k++) {
        if ((n - k) % UP != 0) continue;
        int i = (n - k) / UP;
        if (i >= 0 && i < frames) acc += taps[k] * in[i];
    }
    out[n] = UP * acc;
}
