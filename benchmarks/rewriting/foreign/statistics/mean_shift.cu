// One step of mean shift: every mode moves to the mean of the samples near it.
#define DIMS 16
#pragma optiml launch mean_shift grid(cdiv(modes, 256)) block(256)
__global__ void mean_shift(const float* __restrict__ mode, const float* __restrict__ sample, float* __restrict__ moved,
                           float bandwidth, int modes, int samples) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= modes) return;
    float at[DIMS];
    float mean[DIMS];
    for (int d = 0; d < DIMS; ++d) { at[d] = mode[m * DIMS + d]; mean[d] = 0.0f; }
    float mass = 0.0f;
    float gamma = -0.5f / (bandwidth * bandwidth);
    for (int s = 0; s < samples; ++s) {
        float sq = 0.0f;
        for (int d = 0; d < DIMS; ++d) sq += (at[d] - sample[s * DIMS + d]) * (at[d] - sample[s * DIMS + d]);
        float k = expf(gamma * sq);
        mass += k;
        for (int d = 0; d < DIMS; ++d) mean[d] += k * sample[s * DIMS + d];
    }
    for (int d = 0; d < DIMS; ++d) moved[m * DIMS + d] = mean[d] / mass;
}
