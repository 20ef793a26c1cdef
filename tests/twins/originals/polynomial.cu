#pragma optiml launch polynomial grid(cdiv(n, 64)) block(64)
__global__ void polynomial(const float* x, const float* coefficients, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float result = 0.0f;
        for (int k = 0; k < 8; ++k) {
            result = result * x[i] + coefficients[k];
        }
        out[i] = result;
    }
}
