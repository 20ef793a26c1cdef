// Tape at another speed: each output frame lies between input frames, the same ones in all channels.
#define SPAN 3
__device__ float quintic(float d)
{
    d = fabsf(d);
    if (d < 1.0f) return 1.0f + d * d * (-1.25f + d * (-0.583333f + d * (1.083333f - d * 0.25f)));
    if (d < 2.0f) return 1.75f + d * (-3.75f + d * (2.875f - d * (0.958333f - d * 0.125f)));
    if (d < 3.0f) return expf(-d * d) * (3.0f - d);
    return 0.0f;
}

#pragma optiml launch vary_speed grid(cdiv(made, 128)) block(128)
__global__ void vary_speed(const float *tape, float *out, float speed, int channels, int length, int made)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= made) return;
    float at = i * speed;
    int base = (int)floorf(at);
    for (int c = 0; c < channels; c++) {
        float sum = 0.0f;
        for (int k = 1 - SPAN; k <= SPAN; k++) {
            int j = base + k;
            if (j >= 0 && j < length) sum += quintic(at - (float)j) * tape[c * length + j];
        }
        out[c * made + i] = sum;
    }
}
