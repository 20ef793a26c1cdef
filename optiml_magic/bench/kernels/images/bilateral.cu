// weights fall with the distance of two pixels and with that of their values
#pragma optiml launch bilateral grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16)
__global__ void bilateral(const float* image, float* out, int width, int height, int radius,
                          float spatial, float tonal) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float centre = image[y * width + x];
        float sum = 0.0f;
        float weights = 0.0f;
        for (int i = -radius; i <= radius; i++) {
            for (int j = -radius; j <= radius; j++) {
                int px = x + j;
                int py = y + i;
                if (px < 0) px = 0;
                if (py < 0) py = 0;
                if (px >= width) px = width - 1;
                if (py >= height) py = height - 1;
                float value = image[py * width + px];
                float near = expf(-(i * i + j * j) / (2 * spatial * spatial));
                float like = expf(-(value - centre) * (value - centre) / (2 * tonal * tonal));
                sum += near * like * value;
                weights += near * like;
            }
        }
        out[y * width + x] = sum / weights;
    }
}
