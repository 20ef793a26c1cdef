#pragma optiml launch convolve_2d grid(cdiv(width, 16), cdiv(height, 8)) block(16, 8)
__global__ void convolve_2d(const float* image, const float* filter, float* out, int width,
                            int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float sum = 0.0f;
        for (int dy = 0; dy < 5; dy++) {
            for (int dx = 0; dx < 5; dx++) {
                int px = x + dx - 2;
                int py = y + dy - 2;
                if (px >= 0 && px < width && py >= 0 && py < height) {
                    sum += image[py * width + px] * filter[dy * 5 + dx];
                }
            }
        }
        out[y * width + x] = sum;
    }
}
