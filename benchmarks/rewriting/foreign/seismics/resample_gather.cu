// Traces of a gather, sampled anew after a stretch: the same taper for all of them.
#define HALFWIDTH 4
__device__ float taper(float x)
{
    float d = fabsf(x);
    if (d >= HALFWIDTH) return 0.0f;
    if (d < 1e-3f) return 1.0f;
    float c = cosf(0.3926991f * d);
    return c * c * expf(-0.5f * d * d);
}

__global__ void resample_gather(const float *gather, float *out, float stretch, int traces, int ns)
{
    int it = blockIdx.x * blockDim.x + threadIdx.x;
    if (it >= ns) return;
    float t = it * stretch;
    int first = (int)t - HALFWIDTH + 1;
    for (int tr = 0; tr < traces; tr++) {
        float s = 0.0f;
        for (int k = 0; k < 2 * HALFWIDTH; k++) {
            int j = first + k;
            if (j < 0 || j >= ns) continue;
            s += taper(t - j) * gather[tr * ns + j];
        }
        out[tr * ns + it] = s;
    }
}
#pragma optiml launch resample_gather grid(cdiv(ns, 64)) block(64)
