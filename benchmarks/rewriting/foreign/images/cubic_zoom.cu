// Enlargement by Mitchell's cubic.
__device__ float mitchell(float t)
{
    t = fabsf(t);
    if (t < 1.0f) return (7.0f * t * t * t - 12.0f * t * t + 5.333333f) / 6.0f;
    if (t < 2.0f) return (-2.333333f * t * t * t + 12.0f * t * t - 20.0f * t + 10.666667f) / 6.0f;
    return 0.0f;
}

__global__ void cubic_zoom(const float *in, float *out, float scale, int w, int h, int ow, int oh)
{
    int ox = blockIdx.x * blockDim.x + threadIdx.x;
    int oy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ox >= ow || oy >= oh) return;
    float sx = ox * scale, sy = oy * scale;
    int x0 = (int)sx, y0 = (int)sy;
    float sum = 0.0f;
    for (int j = -1; j <= 2; j++) {
        int y = min(max(y0 + j, 0), h - 1);
        for (int i = -1; i <= 2; i++) {
            int x = min(max(x0 + i, 0), w - 1);
            sum += in[y * w + x] * mitchell(sx - (x0 + i)) * mitchell(sy - (y0 + j));
        }
    }
    out[oy * ow + ox] = sum;
}
#pragma optiml launch cubic_zoom grid(cdiv(ow, 32), cdiv(oh, 8)) block(32, 8)
