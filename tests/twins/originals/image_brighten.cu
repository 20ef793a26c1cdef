#pragma optiml launch image_brighten grid(cdiv(width, 16), cdiv(height, 8)) block(16, 8)
__global__ void image_brighten(const float* image, float* out, int width, int height, float gain) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        float value = image[y * width + x] * gain;
        if (value > 1.0f) value = 1.0f;
        out[y * width + x] = value;
    }
}
