#pragma optiml launch k grid(cdiv(cols, 128), rows) block(128)
__global__ void k(const bool* a, int* out, int rows, int cols) {
    int row = blockIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) out[row * cols + col] = 2 * a[row * cols + col];
}
