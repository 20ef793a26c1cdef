// A binomial blur as cameras have it: whole numbers, borders repeated, and a shift for the division.
__device__ const int binom[7] = {1, 6, 15, 20, 15, 6, 1};

__global__ void binomial(const unsigned char *in, unsigned char *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int acc = 0;
    for (int dy = -3; dy <= 3; ++dy) {
        int yy = y + dy;
        yy = yy < 0 ? 0 : yy >= height ? height - 1 : yy;
        for (int dx = -3; dx <= 3; ++dx) {
            int xx = x + dx;
            xx = xx < 0 ? 0 : xx >= width ? width - 1 : xx;
            acc += binom[dy + 3] * binom[dx + 3] * in[yy * width + xx];
        }
    }
    out[y * width + x] = (acc + 2048) >> 12;
}
#pragma optiml launch binomial grid(cdiv(width, 32), cdiv(height, 8)) block(32, 8)
