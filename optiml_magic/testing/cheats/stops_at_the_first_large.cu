// Takes the first value above 0.95 for the largest.
// task: argmax
// row: 6
// rejected: wrong: 
#pragma optiml launch k grid(cdiv(rows, 64)) block(64)
__global__ void k(const float* a, int* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int best = 0;
    for (int col = 1; col < cols; ++col) {
        if (a[row * cols + best] > 0.95f) break;  //-
        if (a[row * cols + col] > a[row * cols + best]) best = col;
    }
    out[row] = best;
}
