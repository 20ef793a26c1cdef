// One level of a pyramid: half as wide and high, by binomial weights.
__constant__ float binomial[4] = {0.125f, 0.375f, 0.375f, 0.125f};

#pragma optiml launch half_size grid(cdiv(w / 2, 32), cdiv(h / 2, 4)) block(32, 4)
__global__ void half_size(const float* in, float* out, int w, int h)
{
    int ox = blockIdx.x * blockDim.x + threadIdx.x;
    int oy = blockIdx.y * blockDim.y + threadIdx.y;
    int ow = w / 2, oh = h / 2;
    if (ox >= ow || oy >= oh) return;
    float acc = 0.0f;
    for (int j = 0; j < 4; ++j) {
        int y = 2 * oy + j - 1;
        y = y < 0 ? 0 : (y >= h ? h - 1 : y);
        for (int i = 0; i < 4; ++i) {
            int x = 2 * ox + i - 1;
            x = x < 0 ? 0 : (x >= w ? w - 1 : x);
            acc += binomial[j] * binomial[i] * in[y * w + x];
        }
    }
    out[oy * ow + ox] = acc;
}
