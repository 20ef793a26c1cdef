#pragma optiml scratch tmp f4[n]
#pragma optiml launch gesummv grid(cdiv(n, 256)) block(256)
__global__ void gesummv(const float* a, const float* b, const float* x, float* y, float* tmp,
                        float alpha, float beta, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        tmp[i] = 0.0f;
        y[i] = 0.0f;
        for (int j = 0; j < n; j++) {
            tmp[i] += a[i * n + j] * x[j];
            y[i] += b[i * n + j] * x[j];
        }
        y[i] = alpha * tmp[i] + beta * y[i];
    }
}
