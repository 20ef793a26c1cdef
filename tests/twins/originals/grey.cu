#pragma optiml launch grey grid(cdiv(width, 16), cdiv(height, 8)) block(16, 8)
__global__ void grey(const unsigned char* rgb, unsigned char* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int pixel = y * width + x;
    float r = rgb[3 * pixel];
    float g = rgb[3 * pixel + 1];
    float b = rgb[3 * pixel + 2];
    out[pixel] = (unsigned char)(0.299f * r + 0.587f * g + 0.114f * b);
}
