// all products of two signals whose places add up to one of the result
#pragma optiml launch multiply_out grid(cdiv(n + m - 1, 256)) block(256)
__global__ void multiply_out(const float* a, const float* b, float* c, int n, int m) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n + m - 1) return;
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        int j = k - i;
        if (j >= 0 && j < m) sum += a[i] * b[j];
    }
    c[k] = sum;
}
