#pragma optiml launch k grid(cdiv(rows, 32)) block(32)
__global__ void k(const float* a, int* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int best = 0;
    for (int col = 1; col < cols; ++col)
        if (a[row * cols + col] > a[row * cols + best]) best = col;
    out[row] = best;
}
