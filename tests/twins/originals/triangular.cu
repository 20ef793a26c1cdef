#pragma optiml launch triangular grid(cdiv(n, 32)) block(32)
__global__ void triangular(const float* lower, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = 0; j <= i; ++j) {
        sum += lower[i * n + j] * x[j];
    }
    y[i] = sum;
}
