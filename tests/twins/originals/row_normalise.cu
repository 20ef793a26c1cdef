#pragma optiml launch row_normalise grid(cdiv(rows, 32)) block(32)
__global__ void row_normalise(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float squares = 0.0f;
        for (int j = 0; j < cols; j++) {
            squares = squares + a[row * cols + j] * a[row * cols + j];
        }
        float norm = sqrtf(squares);
        for (int j = 0; j < cols; j++) {
            out[row * cols + j] = a[row * cols + j] / norm;
        }
    }
}
