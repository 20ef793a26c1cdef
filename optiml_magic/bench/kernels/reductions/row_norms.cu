#pragma optiml launch row_norms grid(cdiv(rows, 256)) block(256)
__global__ void row_norms(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int j = 0; j < cols; j++) {
            sum += a[row * cols + j] * a[row * cols + j];
        }
        out[row] = sqrtf(sum);
    }
}
