// [d1, d2, d3, d4] becomes [d3, d1, d4, d2]
#pragma optiml launch permute grid(cdiv(d1 * d2 * d3 * d4, 256)) block(256)
__global__ void permute(const float* in, float* out, int d1, int d2, int d3, int d4) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < d1 * d2 * d3 * d4) {
        int i1 = (idx / (d2 * d3 * d4)) % d1;
        int i2 = (idx / (d3 * d4)) % d2;
        int i3 = (idx / d4) % d3;
        int i4 = idx % d4;
        int to = i3 * (d1 * d4 * d2) + i1 * (d4 * d2) + i4 * d2 + i2;
        out[to] = in[idx];
    }
}
