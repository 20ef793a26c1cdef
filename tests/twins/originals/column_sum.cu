#pragma optiml launch column_sum grid(cdiv(cols, 32)) block(32)
__global__ void column_sum(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col < cols) {
        float sum = 0.0f;
        for (int row = 0; row < rows; ++row) {
            sum = sum + a[row * cols + col];
        }
        out[col] = sum;
    }
}
