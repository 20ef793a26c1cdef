// From pixels of 32 channels to planes, through a tile.
#define CHANNELS 32
__global__ void channels_first(const float *nhwc, float *nchw, int pixels)
{
    __shared__ float tile[32 * CHANNELS];
    int lane = threadIdx.x, row = threadIdx.y;
    int base = blockIdx.x * 32;
    for (int p = row; p < 32; p += 8)
        if (base + p < pixels) tile[p * CHANNELS + lane] = nhwc[(base + p) * CHANNELS + lane];
    __syncthreads();
    for (int c = row; c < CHANNELS; c += 8)
        if (base + lane < pixels) nchw[c * pixels + base + lane] = tile[lane * CHANNELS + c];
}
#pragma optiml launch channels_first grid(cdiv(pixels, 32)) block(32, 8)
