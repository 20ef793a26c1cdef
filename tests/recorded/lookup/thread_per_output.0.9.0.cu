#pragma optiml launch looked_up grid(cdiv(n, 128)) block(128)
__global__ void looked_up(const float* x, const float* xs, const float* ys, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    int low = 0, high = 16;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (xs[middle] <= value) low = middle;
        else high = middle;
    }
    float slope = (ys[low + 1] - ys[low]) / (xs[low + 1] - xs[low]);
    float inside = slope * (value - xs[low]) + ys[low];
    out[i] = value < xs[0] ? ys[0] : value > xs[16] ? ys[16] : inside;
}
