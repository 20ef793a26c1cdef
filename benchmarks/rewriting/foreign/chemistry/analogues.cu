// Properties of molecules from those measured, by distances of descriptors; what is too far away has no say.
#define DESCRIPTORS 32
#define PROPERTIES 12
__global__ void analogues(const float *wanted, const float *known, const float *measured, float *predicted,
                          float cutoff, int molecules, int library)
{
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= molecules) return;
    float total = 1e-6f;
    float guess[PROPERTIES];
    for (int p = 0; p < PROPERTIES; p++) guess[p] = 0.0f;
    for (int k = 0; k < library; k++) {
        float r2 = 0.0f;
        for (int d = 0; d < DESCRIPTORS; d++) {
            float x = wanted[m * DESCRIPTORS + d] - known[k * DESCRIPTORS + d];
            r2 += x * x;
        }
        if (r2 < cutoff) {
            float w = 1.0f / (1.0f + r2);
            total += w;
            for (int p = 0; p < PROPERTIES; p++) guess[p] += w * measured[k * PROPERTIES + p];
        }
    }
    for (int p = 0; p < PROPERTIES; p++) predicted[m * PROPERTIES + p] = guess[p] / total;
}
#pragma optiml launch analogues grid(cdiv(molecules, 128)) block(128)
