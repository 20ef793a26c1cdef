// Hyperspectral pixels by the material whose spectrum they make the least angle with. Bands are planes.
__global__ void spectral_angle(const float *cube, const float *library, int *material, float *angle,
                               int pixels, int bands, int materials)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pixels) return;
    float own = 0.0f;
    for (int b = 0; b < bands; b++)
        own += cube[b * pixels + p] * cube[b * pixels + p];
    float least = 4.0f;
    int which = -1;
    for (int m = 0; m < materials; m++) {
        float dot = 0.0f, norm = 0.0f;
        for (int b = 0; b < bands; b++) {
            float r = library[m * bands + b];
            dot += r * cube[b * pixels + p];
            norm += r * r;
        }
        float a = acosf(fminf(dot * rsqrtf(own * norm), 1.0f));
        if (a < least) {
            least = a;
            which = m;
        }
    }
    material[p] = which;
    angle[p] = least;
}
#pragma optiml launch spectral_angle grid(cdiv(pixels, 128)) block(128)
