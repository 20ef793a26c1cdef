#pragma optiml launch matvec grid(cdiv(rows, 32)) block(32)
__global__ void matvec(const float* a, const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int k = 0; k < cols; k++) {
            sum += a[row * cols + k] * x[k];
        }
        y[row] = sum;
    }
}
