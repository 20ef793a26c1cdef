// Wavelets with holes: of a long filter only every eighth coefficient counts at this level.
#define LEVEL 8
#pragma optiml launch holes grid(cdiv(n, 128)) block(128)
__global__ void holes(const float* x, const float* h, float* y, int n, int span)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float acc = 0.0f;
    for (int k = 0; k < span; ++k) {
        if (k % LEVEL) continue;
        if (i - k < 0) continue;
        acc += h[k / LEVEL] * x[i - k];
    }
    y[i] = acc;
}
