#pragma optiml launch transpose grid(cdiv(cols, 16), cdiv(rows, 16)) block(16, 16)
__global__ void transpose(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        out[col * rows + row] = a[row * cols + col];
    }
}
