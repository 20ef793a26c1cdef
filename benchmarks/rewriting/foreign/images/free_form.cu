// Free-form deformation: displacements everywhere from a lattice of cubic B-splines, `step` pixels apart.
__device__ float spline(int k, float t)
{
    switch (k) {
    case 0: return (1 - t) * (1 - t) * (1 - t) / 6;
    case 1: return (3 * t * t * t - 6 * t * t + 4) / 6;
    case 2: return (-3 * t * t * t + 3 * t * t + 3 * t + 1) / 6;
    default: return t * t * t / 6;
    }
}

__global__ void free_form(const float2 *lattice, float2 *field, int step, int lw, int w, int h)
{
    const int x = blockIdx.x * 16 + threadIdx.x;
    const int y = blockIdx.y * 16 + threadIdx.y;
    if (x < w && y < h) {
        const int i = x / step, j = y / step;
        const float u = (float)(x % step) / step, v = (float)(y % step) / step;
        float2 d = make_float2(0.0f, 0.0f);
        for (int m = 0; m < 4; ++m)
            for (int l = 0; l < 4; ++l) {
                const float b = spline(l, u) * spline(m, v);
                const float2 c = lattice[(j + m) * lw + (i + l)];
                d.x += b * c.x;
                d.y += b * c.y;
            }
        field[y * w + x] = d;
    }
}
#pragma optiml launch free_form grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
