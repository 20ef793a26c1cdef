// Unsharp masking: the picture less its blur, by taps that are computed beforehand.
#pragma optiml launch sharpen grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
__global__ void sharpen(const unsigned char *src, const float *taps, unsigned char *dst, float amount,
                        int radius, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float blur = 0.0f, norm = 0.0f;
    for (int dy = -radius; dy <= radius; dy++) {
        int yy = y + dy;
        if (yy < 0 || yy >= h) continue;
        for (int dx = -radius; dx <= radius; dx++) {
            int xx = x + dx;
            if (xx < 0 || xx >= w) continue;
            float k = taps[dy + radius] * taps[dx + radius];
            blur += k * src[yy * w + xx];
            norm += k;
        }
    }
    float centre = src[y * w + x];
    float sharp = centre + amount * (centre - blur / norm);
    dst[y * w + x] = (unsigned char)fminf(fmaxf(sharp + 0.5f, 0.0f), 255.0f);
}
