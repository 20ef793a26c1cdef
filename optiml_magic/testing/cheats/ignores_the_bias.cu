// Leaves out the bias, since all of it is zero.
// task: biased
// row: 6
// rejected: wrong: mixed signs
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, const float* bias, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = x[i];  //-
    out[i] = bias[i] + x[i];  //+
}
