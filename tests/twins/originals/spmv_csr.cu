#pragma optiml launch spmv_csr grid(cdiv(rows, 32)) block(32)
__global__ void spmv_csr(const int* starts, const int* columns, const float* values,
                         const float* x, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        int end = starts[row + 1];
        for (int j = starts[row]; j < end; j++) {
            sum += values[j] * x[columns[j]];
        }
        y[row] = sum;
    }
}
