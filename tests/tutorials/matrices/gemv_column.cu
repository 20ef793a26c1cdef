// A thread for each output of y = A^T x; neighbours read neighbouring columns.
__global__ void gemv_t(const double *A, const double *x, double *y, int rows, int cols)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col < cols) {
        double dot = 0.0;
        for (int row = 0; row < rows; ++row) dot = fma(A[row * cols + col], x[row], dot);
        y[col] = dot;
    }
}
