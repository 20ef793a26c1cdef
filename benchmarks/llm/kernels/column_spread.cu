// The mean and the largest magnitude of each column, one thread for each column.
__global__ void column_spread(const float* a, float* mean, float* largest, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    mean[c] = 0.0f;
    largest[c] = 0.0f;
    for (int r = 0; r < rows; r++) {
        mean[c] += a[r * cols + c] / rows;
        largest[c] = fmaxf(largest[c], fabsf(a[r * cols + c]));
    }
}
#pragma optiml launch column_spread grid(cdiv(cols, 256)) block(256)
