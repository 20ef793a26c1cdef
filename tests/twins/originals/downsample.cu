#pragma optiml launch downsample grid(cdiv(out_width, 16), cdiv(out_height, 8)) block(16, 8)
__global__ void downsample(const float* image, float* out, int width, int out_width,
                           int out_height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= out_width || y >= out_height) return;
    float sum = 0.0f;
    for (int j = 0; j < 2; ++j) {
        for (int i = 0; i < 2; ++i) {
            sum = sum + image[(2 * y + j) * width + 2 * x + i];
        }
    }
    out[y * out_width + x] = sum * 0.25f;
}
