#pragma optiml launch grey grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16)
__global__ void grey(const unsigned char* rgb, unsigned char* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        int i = y * width + x;
        unsigned char r = rgb[3 * i];
        unsigned char g = rgb[3 * i + 1];
        unsigned char b = rgb[3 * i + 2];
        out[i] = (77 * r + 150 * g + 29 * b) >> 8;
    }
}
