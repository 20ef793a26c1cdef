// One thread takes one row.
__global__ void softmax(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float greatest = x[row * cols];
    for (int c = 1; c < cols; c++) {
        greatest = fmaxf(greatest, x[row * cols + c]);
    }
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) {
        sum += expf(x[row * cols + c] - greatest);
    }
    for (int c = 0; c < cols; c++) {
        out[row * cols + c] = expf(x[row * cols + c] - greatest) / sum;
    }
}
#pragma optiml launch softmax grid(cdiv(rows, 128)) block(128)
