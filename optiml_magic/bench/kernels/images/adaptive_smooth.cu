// the box around a pixel grows until it holds enough light, or reaches the largest radius
#pragma optiml launch adaptive_smooth grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16)
__global__ void adaptive_smooth(const float* image, int* box, float* out, int width, int height,
                                int largest, float enough) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float sum = 0.0f;
        int count = 0;
        int q = 0;
        while (sum < enough && q < largest) {
            q++;
            sum = 0.0f;
            count = 0;
            for (int i = -q; i <= q; i++) {
                for (int j = -q; j <= q; j++) {
                    if (x - j >= 0 && x - j < width && y - i >= 0 && y - i < height) {
                        sum += image[(y - i) * width + x - j];
                        count++;
                    }
                }
            }
        }
        box[y * width + x] = q;
        out[y * width + x] = sum / count;
    }
}
