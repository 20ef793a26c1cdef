__device__ __forceinline__ float lerp(float a, float b, float t) { return fmaf(t, b - a, a); }

__global__ void resize(const float *src, float *dst, int src_w, int src_h, int dst_w, int dst_h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= dst_w || y >= dst_h) return;
    float fx = fmaxf((x + 0.5f) * src_w / dst_w - 0.5f, 0.0f);
    float fy = fmaxf((y + 0.5f) * src_h / dst_h - 0.5f, 0.0f);
    int x0 = (int)fx, y0 = (int)fy;
    int x1 = min(x0 + 1, src_w - 1), y1 = min(y0 + 1, src_h - 1);
    float top = lerp(src[y0 * src_w + x0], src[y0 * src_w + x1], fx - x0);
    float bottom = lerp(src[y1 * src_w + x0], src[y1 * src_w + x1], fx - x0);
    dst[y * dst_w + x] = lerp(top, bottom, fy - y0);
}
