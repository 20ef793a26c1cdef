// Dilation of a depth image by a square.
template <int RADIUS>
__device__ float greatest(const float *depth, int x, int y, int w, int h)
{
    float m = 0.0f;
    for (int j = -RADIUS; j <= RADIUS; ++j) {
        for (int i = -RADIUS; i <= RADIUS; ++i) {
            if (x + i >= 0 && x + i < w && y + j >= 0 && y + j < h) m = fmaxf(m, depth[(y + j) * w + x + i]);
        }
    }
    return m;
}

__global__ void dilate(const float *depth, float *out, int w, int h)
{
    const int x = blockIdx.x * 16 + threadIdx.x;
    const int y = blockIdx.y * 16 + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = greatest<6>(depth, x, y, w, h);
}
#pragma optiml launch dilate grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
