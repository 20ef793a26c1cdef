// Lanes run along the rows of a matrix that is stored row by row: ncu has a rule for that.
// task: scale_matrix
// devices: cuda
#pragma optiml launch k grid(cdiv(rows, 32), cdiv(cols, 8)) block(32, 8)  //-
#pragma optiml launch k grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)  //+
__global__ void k(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;  //-
    int col = blockIdx.y * blockDim.y + threadIdx.y;  //-
    int row = blockIdx.y * blockDim.y + threadIdx.y;  //+
    int col = blockIdx.x * blockDim.x + threadIdx.x;  //+
    if (row < rows && col < cols) out[row * cols + col] = 2.0f * a[row * cols + col];
}
