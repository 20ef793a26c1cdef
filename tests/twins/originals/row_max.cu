#pragma optiml launch row_max grid(cdiv(rows, 32)) block(32)
__global__ void row_max(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float best = a[row * cols];
        for (int col = 1; col < cols; col++) {
            if (a[row * cols + col] > best) {
                best = a[row * cols + col];
            }
        }
        out[row] = best;
    }
}
