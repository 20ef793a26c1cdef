// Goertzel filters for a bank of tones in each channel, and their powers at the end.
#define TONES 16
#pragma optiml launch tone_bank grid(cdiv(channels, 64)) block(64)
__global__ void tone_bank(const float* samples, const float* coeff, float* power, int channels, int length)
{
    const int ch = blockIdx.x * blockDim.x + threadIdx.x;
    if (ch >= channels)
        return;
    float s1[TONES], s2[TONES];
    for (int k = 0; k < TONES; ++k)
        s1[k] = s2[k] = 0.0f;
    for (int n = 0; n < length; ++n)
    {
        const float x = samples[(size_t)ch * length + n];
        for (int k = 0; k < TONES; ++k)
        {
            const float s0 = x + coeff[k] * s1[k] - s2[k];
            s2[k] = s1[k];
            s1[k] = s0;
        }
    }
    for (int k = 0; k < TONES; ++k)
        power[ch * TONES + k] = s1[k] * s1[k] + s2[k] * s2[k] - coeff[k] * s1[k] * s2[k];
}
