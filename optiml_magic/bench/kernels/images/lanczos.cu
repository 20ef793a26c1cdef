#define A 3
#define PI 3.14159265358979f

__device__ float lanczos_weight(float x) {
    if (x == 0.0f) return 1.0f;
    if (x <= -A || x >= A) return 0.0f;
    return A * sinf(PI * x) * sinf(PI * x / A) / (PI * PI * x * x);
}

// an image enlarged by a whole factor, six by six neighbours a pixel
#pragma optiml launch lanczos grid(cdiv(width * factor, 16), cdiv(height * factor, 16)) block(16, 16)
__global__ void lanczos(const float* image, float* out, int width, int height, int factor) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width * factor || y >= height * factor) return;
    float sx = (float)x / factor;
    float sy = (float)y / factor;
    int cx = floorf(sx);
    int cy = floorf(sy);
    float sum = 0.0f;
    float weights = 0.0f;
    for (int j = cy - A + 1; j <= cy + A; j++) {
        for (int i = cx - A + 1; i <= cx + A; i++) {
            float w = lanczos_weight(sx - i) * lanczos_weight(sy - j);
            int px = min(max(i, 0), width - 1);
            int py = min(max(j, 0), height - 1);
            sum += w * image[py * width + px];
            weights += w;
        }
    }
    out[y * width * factor + x] = sum / weights;
}
