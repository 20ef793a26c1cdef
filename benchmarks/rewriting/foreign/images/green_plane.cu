// Green of a Bayer mosaic everywhere: the mean of green pixels in a square of five.
__global__ void green_plane(const float *raw, float *green, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 2 || y < 2 || x >= w - 2 || y >= h - 2) return;
    float sum = 0.0f;
    int n = 0;
    for (int j = y - 2; j <= y + 2; j++) {
        for (int i = x - 2; i <= x + 2; i++) {
            if ((i + j) % 2 == 0) continue;
            sum += raw[j * w + i];
            n++;
        }
    }
    green[y * w + x] = sum / n;
}
#pragma optiml launch green_plane grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
