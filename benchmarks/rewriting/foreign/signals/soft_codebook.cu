// Frames made anew from a codebook: each entry counts by how near it is (log-sum-exp in one pass).
__global__ void soft_codebook(const float* __restrict__ frame, const float* __restrict__ code, float* __restrict__ rebuilt,
                              float* __restrict__ energy, int frames, int codes, float temperature)
{
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= frames) return;
    float best = -1e30f, z = 0.0f;
    float mix[40];
#pragma unroll
    for (int b = 0; b < 40; b++) mix[b] = 0.0f;
    for (int c = 0; c < codes; c++) {
        float d = 0.0f;
        for (int b = 0; b < 40; b++) {
            float e = frame[f * 40 + b] - code[c * 40 + b];
            d += e * e;
        }
        float s = -d / temperature;
        float shrink = 1.0f, w;
        if (s > best) {
            shrink = expf(best - s);
            w = 1.0f;
            best = s;
        } else {
            w = expf(s - best);
        }
        z = z * shrink + w;
        for (int b = 0; b < 40; b++) mix[b] = mix[b] * shrink + w * code[c * 40 + b];
    }
    for (int b = 0; b < 40; b++) rebuilt[f * 40 + b] = mix[b] / z;
    energy[f] = -temperature * (best + logf(z));
}
#pragma optiml launch soft_codebook grid(cdiv(frames, 128)) block(128)
