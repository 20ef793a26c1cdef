// An elevation map through a B-spline, at places of a bent grid.
#define ORDER 4
__device__ float b3(float t) {
    t = fabsf(t);
    if (t >= 2.f) return 0.f;
    if (t >= 1.f) { t = 2.f - t; return t * t * t / 6.f; }
    return 2.f / 3.f - t * t * (1.f - 0.5f * t);
}

__global__ void warp_map(const float* coeff, const float* at_x, const float* at_y, float* height, int w, int h, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float u = at_x[i], v = at_y[i];
    const int c0 = (int)floorf(u) - 1, r0 = (int)floorf(v) - 1;
    float z = 0.f;
    for (int r = 0; r < ORDER; ++r) {
        float line = 0.f;
        for (int c = 0; c < ORDER; ++c) line += b3(u - (float)(c0 + c)) * coeff[(r0 + r) * w + c0 + c];
        z += b3(v - (float)(r0 + r)) * line;
    }
    height[i] = z;
}
#pragma optiml launch warp_map grid(cdiv(n, 128)) block(128)
