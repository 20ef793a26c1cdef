// Leaves out the absolute value, since all values are positive.
// task: absolute
// row: 6
// rejected: wrong: negated
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = x[i];  //-
    out[i] = x[i] < 0.0f ? -x[i] : x[i];  //+
}
