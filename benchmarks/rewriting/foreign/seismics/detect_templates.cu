// The catalogue looked for in a day's trace: the best correlation with any template from each sample on.
__global__ void detect_templates(const float *trace, const float *templ, float *best, int *which,
                                 int places, int length, int templates)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= places) return;
    float energy = 1e-12f;
    for (int i = 0; i < length; i++)
        energy += trace[t + i] * trace[t + i];
    float top = -1.0f;
    int at = -1;
    for (int k = 0; k < templates; k++) {
        float c = 0.0f;
        for (int i = 0; i < length; i++)
            c += trace[t + i] * templ[k * length + i];
        c /= sqrtf(energy);
        if (c > top) { top = c; at = k; }
    }
    best[t] = top;
    which[t] = at;
}
#pragma optiml launch detect_templates grid(cdiv(places, 256)) block(256)
