#pragma optiml launch column_means grid(cdiv(cols, 256)) block(256)
__global__ void column_means(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col < cols) {
        float sum = 0.0f;
        for (int i = 0; i < rows; i++) {
            sum += a[i * cols + col];
        }
        out[col] = sum / rows;
    }
}
