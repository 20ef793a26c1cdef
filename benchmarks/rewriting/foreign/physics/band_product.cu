// a matrix that is stored by its diagonals, times a vector
#pragma optiml launch band_product grid(cdiv(n, 256)) block(256)
__global__ void band_product(const float* diagonals, const float* x, float* y, int n, int band) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < n; j++) {
        if (j < row - band || j > row + band) continue;
        sum += diagonals[row * (2 * band + 1) + (j - row + band)] * x[j];
    }
    y[row] = sum;
}
