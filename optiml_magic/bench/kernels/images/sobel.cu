#pragma optiml launch sobel grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16)
__global__ void sobel(const unsigned char* image, unsigned char* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int left = x > 0 ? x - 1 : 0;
    int right = x < width - 1 ? x + 1 : width - 1;
    int above = y > 0 ? y - 1 : 0;
    int below = y < height - 1 ? y + 1 : height - 1;
    int a = image[above * width + left], b = image[above * width + x];
    int c = image[above * width + right], d = image[y * width + left];
    int f = image[y * width + right], g = image[below * width + left];
    int h = image[below * width + x], i = image[below * width + right];
    int horizontal = c + 2 * f + i - a - 2 * d - g;
    int vertical = a + 2 * b + c - g - 2 * h - i;
    int sum = abs(horizontal) + abs(vertical);
    out[y * width + x] = sum > 255 ? 255 : sum;
}
