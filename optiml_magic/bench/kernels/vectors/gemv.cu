#pragma optiml launch gemv grid(cdiv(rows, 256)) block(256)
__global__ void gemv(const float* a, const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0;
        for (int j = 0; j < cols; j++)
            sum += a[row * cols + j] * x[j];
        y[row] = sum;
    }
}
