// Single pulse search: sums of 48 samples, dispersion by dispersion, eight bits a sample.
__global__ void boxcar(const unsigned char* series, float* snr, float mean, float rms, int trials, int length)
{
    int dm = blockIdx.y;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i <= length - 48; i += gridDim.x * blockDim.x)
    {
        const unsigned char* from = series + (size_t)dm * length + i;
        int sum = 0;
        for (int k = 0; k < 48; ++k)
            sum += from[k];
        snr[(size_t)dm * length + i] = (sum - 48 * mean) / (rms * 6.928203f);
    }
}
#pragma optiml launch boxcar grid(cdiv(length, 256), trials) block(256)
