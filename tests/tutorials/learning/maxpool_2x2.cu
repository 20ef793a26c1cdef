template <int POOL>
__global__ void maxpool(const float *in, float *out, unsigned char *which, int channels, int h, int w)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.z;
    int oh = h / POOL, ow = w / POOL;
    if (x >= ow || y >= oh) return;
    float best = -FLT_MAX;
    int at = 0;
    for (int k = 0; k < POOL * POOL; ++k) {
        float v = in[(c * h + y * POOL + k / POOL) * w + x * POOL + k % POOL];
        if (v > best) {
            best = v;
            at = k;
        }
    }
    out[(c * oh + y) * ow + x] = best;
    which[(c * oh + y) * ow + x] = at;
}
#pragma optiml launch maxpool<2> grid(cdiv(w / 2, 16), cdiv(h / 2, 4), channels) block(16, 4)
