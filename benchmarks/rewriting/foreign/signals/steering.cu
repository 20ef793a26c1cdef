// Spectra of sources at a grid of frequencies, each weighed by how the array answers there.
#define ELEMENTS 24
__global__ void steering(const float* position, const float* angle, const float* spectrum, float* out, int angles, int bins)
{
    int bin = blockIdx.x * blockDim.x + threadIdx.x;
    int a = blockIdx.y * blockDim.y + threadIdx.y;
    if (bin >= bins || a >= angles) return;
    float re = 0.0f, im = 0.0f;
    for (int e = 0; e < ELEMENTS; ++e) {
        float phase = position[e] * sinf(angle[a]);
        re += cosf(phase);
        im += sinf(phase);
    }
    out[a * bins + bin] = spectrum[bin] * (re * re + im * im) / (ELEMENTS * ELEMENTS);
}
#pragma optiml launch steering grid(cdiv(bins, 64), cdiv(angles, 4)) block(64, 4)
