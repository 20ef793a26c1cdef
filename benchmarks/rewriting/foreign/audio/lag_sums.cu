// how alike a signal is to itself, a lag later
#pragma optiml launch lag_sums grid(cdiv(lags, 128)) block(128)
__global__ void lag_sums(const float* x, float* r, int n, int lags) {
    int lag = blockIdx.x * blockDim.x + threadIdx.x;
    if (lag >= lags) return;
    float sum = 0;
    for (int i = 0; i + lag < n; i++) sum += x[i] * x[i + lag];
    r[lag] = sum / n;
}
