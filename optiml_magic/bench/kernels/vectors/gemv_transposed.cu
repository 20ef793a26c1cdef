#pragma optiml launch gemv_transposed grid(cdiv(cols, 256)) block(256)
__global__ void gemv_transposed(const float* a, const float* x, float* y, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col < cols) {
        float sum = 0;
        for (int i = 0; i < rows; i++)
            sum += a[i * cols + col] * x[i];
        y[col] = sum;
    }
}
