// Coherence of two components in windows of 129 samples.
__global__ void coherence(const float *north, const float *east, float *coherent, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    float ne = 0.0f, nn = 0.0f, ee = 0.0f;
    for (int w = -64; w <= 64; w++) {
        int j = i + w;
        if (j < 0 || j >= n) continue;
        ne += north[j] * east[j];
        nn += north[j] * north[j];
        ee += east[j] * east[j];
    }
    coherent[i] = ne * rsqrtf(nn * ee + 1e-12f);
}
#pragma optiml launch coherence grid(cdiv(n, 128)) block(128)
