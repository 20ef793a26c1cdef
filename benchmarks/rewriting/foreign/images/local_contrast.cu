// Lightest less darkest pixel of a square of nine.
__global__ void local_contrast(const unsigned char *grey, unsigned char *contrast, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int light = 0, dark = 255;
    for (int v = -4; v <= 4; ++v) {
        if (y + v < 0 || y + v >= h) continue;
        for (int u = -4; u <= 4; ++u) {
            if (x + u < 0 || x + u >= w) continue;
            int p = grey[(y + v) * w + x + u];
            light = max(light, p);
            dark = min(dark, p);
        }
    }
    contrast[y * w + x] = light - dark;
}
#pragma optiml launch local_contrast grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4)
