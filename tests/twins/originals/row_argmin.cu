#pragma optiml launch row_argmin grid(cdiv(rows, 32)) block(32)
__global__ void row_argmin(const float* a, int* where, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float best = a[row * cols];
    int place = 0;
    for (int col = 1; col < cols; ++col) {
        float value = a[row * cols + col];
        if (value < best) {
            best = value;
            place = col;
        }
    }
    where[row] = place;
}
