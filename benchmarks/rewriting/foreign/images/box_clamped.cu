// Mean of a square of 15 pixels, 16-bit camera, borders repeated.
#define R 7
#define CLAMP(v, lo, hi) ((v) < (lo) ? (lo) : (v) > (hi) ? (hi) : (v))

__global__ void box_clamped(const unsigned short *src, unsigned short *dst, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    unsigned int sum = 0;
    for (int dy = -R; dy <= R; dy++)
        for (int dx = -R; dx <= R; dx++) {
            int px = CLAMP(x + dx, 0, width - 1);
            int py = CLAMP(y + dy, 0, height - 1);
            sum += src[py * width + px];
        }
    dst[y * width + x] = sum / ((2 * R + 1) * (2 * R + 1));
}
#pragma optiml launch box_clamped grid(cdiv(width, 32), cdiv(height, 8)) block(32, 8)
