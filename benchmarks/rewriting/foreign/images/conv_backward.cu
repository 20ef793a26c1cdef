// Gradient of a convolution with stride 2 and a kernel of 5: which outputs a pixel went into.
#define K 5
#define STRIDE 2
__global__ void conv_backward(const float *grad, const float *weight, float *into, int w, int h, int ow, int oh)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    for (int ky = 0; ky < K; ky++) {
        if ((y - ky) % STRIDE != 0) continue;
        for (int kx = 0; kx < K; kx++) {
            if ((x - kx) % STRIDE != 0) continue;
            int oy = (y - ky) / STRIDE, ox = (x - kx) / STRIDE;
            if (oy >= 0 && oy < oh && ox >= 0 && ox < ow) sum += grad[oy * ow + ox] * weight[ky * K + kx];
        }
    }
    into[y * w + x] = sum;
}
#pragma optiml launch conv_backward grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4)
