#pragma optiml launch filter_2d grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16)
__global__ void filter_2d(const float* image, const float* weights, float* out, int width,
                          int height, int radius) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float sum = 0.0f;
        for (int dy = -radius; dy <= radius; dy++) {
            for (int dx = -radius; dx <= radius; dx++) {
                int px = min(max(x + dx, 0), width - 1);
                int py = min(max(y + dy, 0), height - 1);
                sum += image[py * width + px] *
                       weights[(dy + radius) * (2 * radius + 1) + dx + radius];
            }
        }
        out[y * width + x] = sum;
    }
}
