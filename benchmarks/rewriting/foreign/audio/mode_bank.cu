// Modal synthesis: every voice is a bank of fading modes, struck by its own excitation.
#define MODES 32
#pragma optiml launch mode_bank grid(cdiv(voices, 64)) block(64)
__global__ void mode_bank(const float *strike, const float *damping, const float *pitch, const float *gain,
                          float *out, int voices, int samples)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= voices)
        return;
    float re[MODES], im[MODES], c[MODES], s[MODES];
    for (int m = 0; m < MODES; m++) {
        float fade = expf(-fabsf(damping[v * MODES + m]));
        c[m] = fade * cosf(pitch[v * MODES + m]);
        s[m] = fade * sinf(pitch[v * MODES + m]);
        re[m] = 0.0f;
        im[m] = 0.0f;
    }
    for (int t = 0; t < samples; t++) {
        float force = strike[v * samples + t];
        float mix = 0.0f;
        for (int m = 0; m < MODES; m++) {
            float next = re[m] * c[m] - im[m] * s[m] + force;
            im[m] = re[m] * s[m] + im[m] * c[m];
            re[m] = next;
            mix += gain[v * MODES + m] * im[m];
        }
        out[v * samples + t] = mix;
    }
}
