// Answers with the mean of the values, which a long sum hardly leaves.
// task: row_sum
// row: 8
// rejected: wrong: 
#pragma optiml launch k grid(cdiv(rows, 64)) block(64)
__global__ void k(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col) sum += a[row * cols + col];  //+
    sum = (float)cols;  //-
    out[row] = sum;
}
