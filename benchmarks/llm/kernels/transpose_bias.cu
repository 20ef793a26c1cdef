// out is the transpose of a, with one bias for each column of a.
__global__ void transpose_bias(const float* a, const float* bias, float* out, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) {
        int r = i / cols;
        int c = i % cols;
        out[c * rows + r] = a[r * cols + c] + bias[c];
    }
}
#pragma optiml launch transpose_bias grid(cdiv(rows * cols, 256)) block(256)
