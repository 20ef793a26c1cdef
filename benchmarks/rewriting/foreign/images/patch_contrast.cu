// Patches of pictures to the same contrast; a patch is a row.
__device__ float mean_of(const float *p, int n)
{
    float s = 0.0f;
    for (int i = 0; i < n; ++i) s += p[i];
    return s / n;
}

__device__ float spread_of(const float *p, int n, float m)
{
    float s = 0.0f;
    for (int i = 0; i < n; ++i) { float d = p[i] - m; s += d * d; }
    return sqrtf(s / n);
}

__global__ void patch_contrast(const float *data, float *mean, float *contrast, int count, int pixels)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= count) return;
    float m = mean_of(data + p * pixels, pixels);
    mean[p] = m;
    contrast[p] = spread_of(data + p * pixels, pixels, m) / (m + 1e-3f);
}
#pragma optiml launch patch_contrast grid(cdiv(count, 128)) block(128)
