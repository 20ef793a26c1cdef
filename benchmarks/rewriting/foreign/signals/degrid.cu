// Visibilities from a grid: six by six cells around each, by a function that falls to zero.
#define W 6
struct Cell { float re, im; };

__device__ inline float falls(float nu)
{
    const float s = 1.0f - nu * nu;
    return s > 0.0f ? sqrtf(s) * expf(3.0f * sqrtf(s) - 3.0f) : 0.0f;
}

#pragma optiml launch degrid grid(cdiv(nvis, 128)) block(128)
__global__ void degrid(const Cell* grid, const float* u, const float* v, Cell* vis, int nvis, int side)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nvis) return;
    int iu = (int)u[i], iv = (int)v[i];
    Cell sum = {0.0f, 0.0f};
    for (int b = 0; b < W; ++b) {
        for (int a = 0; a < W; ++a) {
            float weight = falls((v[i] - (iv + b - 2)) / 3.0f) * falls((u[i] - (iu + a - 2)) / 3.0f);
            Cell c = grid[(iv + b - 2) * side + iu + a - 2];
            sum.re += weight * c.re;
            sum.im += weight * c.im;
        }
    }
    vis[i] = sum;
}
