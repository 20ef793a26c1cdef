// Takes the rows for the columns; the given matrix is square.
// task: transpose
// row: 8
// rejected: wrong|out_of_bounds: on rows = 
#pragma optiml launch k grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
__global__ void k(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || col >= cols) return;
    out[col * cols + row] = a[row * cols + col];  //-
    out[col * rows + row] = a[row * cols + col];  //+
}
