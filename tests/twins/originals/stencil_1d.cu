#pragma optiml launch stencil_1d grid(cdiv(n, 64)) block(64)
__global__ void stencil_1d(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i > 0 && i < n - 1) {
        out[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
    } else {
        out[i] = x[i];
    }
}
