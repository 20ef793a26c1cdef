#pragma optiml launch looked_up grid(cdiv(n, 128)) block(128)
__global__ void looked_up(const float* x, const float* xs, const float* ys, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int k = 0;
    while (k < 15 && xs[k + 1] < x[i]) ++k;
    float t = (x[i] - xs[k]) / (xs[k + 1] - xs[k]);
    out[i] = ys[k] + t * (ys[k + 1] - ys[k]);
}
