// A Gaussian as rows, then columns, with a buffer between.
constexpr int R = 2;
__constant__ float weights[2 * R + 1] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

template <int DX, int DY>
__device__ float blur_at(const float *image, int x, int y, int w, int h)
{
    float sum = 0.f;
#pragma unroll
    for (int k = -R; k <= R; ++k) {
        int xx = min(max(x + k * DX, 0), w - 1), yy = min(max(y + k * DY, 0), h - 1);
        sum += weights[k + R] * image[yy * w + xx];
    }
    return sum;
}

template <int DX, int DY>
__global__ void blur(const float *src, float *dst, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) dst[y * w + x] = blur_at<DX, DY>(src, x, y, w, h);
}

#pragma optiml scratch rows float[h * w]
#pragma optiml launch blur<1, 0> grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4) args(src, rows, w, h)
#pragma optiml launch blur<0, 1> grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4) args(rows, dst, w, h)
