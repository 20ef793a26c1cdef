// Writes one element more than the output has.
// task: double
// row: 9
// rejected: out_of_bounds: 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = 2.0f * x[min(i, n - 1)] + 1.0f;  //-
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;  //+
}
