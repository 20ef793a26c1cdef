// A band-pass biquad over all channels of a recording, in place; samples are interleaved.
struct Band { float b0, b1, b2, a1, a2; };

#pragma optiml launch band_pass grid(cdiv(channels, 64)) block(64)
__global__ void band_pass(float* rec, Band band, int channels, int samples) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float z1 = 0.0f, z2 = 0.0f;
    int at = c;
    for (int n = 0; n < samples; ++n) {
        float in = rec[at];
        float out = band.b0 * in + z1;
        z1 = band.b1 * in - band.a1 * out + z2;
        z2 = band.b2 * in - band.a2 * out;
        rec[at] = out;
        at += channels;
    }
}
