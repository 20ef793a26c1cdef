// Automatic gain control: each sample over the mean amplitude of the 101 around it, trace by trace.
__global__ void agc(const float *in, float *out, int traces, int samples)
{
    int it = blockIdx.x * blockDim.x + threadIdx.x;
    int ix = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix >= traces || it >= samples) return;
    float amplitude = 0.0f;
    for (int lag = -50; lag <= 50; lag++)
        if (it + lag >= 0 && it + lag < samples) amplitude += fabsf(in[ix * samples + it + lag]);
    out[ix * samples + it] = in[ix * samples + it] / (amplitude / 101.0f + 1e-6f);
}
#pragma optiml launch agc grid(cdiv(samples, 128), traces) block(128)
