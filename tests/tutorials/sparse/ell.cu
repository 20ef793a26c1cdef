// ELLPACK, column-major; -1 marks a missing entry.
__global__ void spmv_ell(int num_rows, int max_entries, const int *cols, const double *values, const double *x, double *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    double sum = 0;
    for (int e = 0; e < max_entries; ++e) {
        int c = cols[e * num_rows + row];
        if (c < 0) break;
        sum += values[e * num_rows + row] * x[c];
    }
    y[row] = sum;
}
