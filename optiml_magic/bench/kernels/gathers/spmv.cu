#pragma optiml launch spmv grid(cdiv(rows, 256)) block(256)
__global__ void spmv(const int* starts, const int* columns, const float* values, const float* x,
                     float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int k = starts[row]; k < starts[row + 1]; k++) {
            sum += values[k] * x[columns[k]];
        }
        y[row] = sum;
    }
}
