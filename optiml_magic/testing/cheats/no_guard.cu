// Leaves out the guard, which the given size does not need.
// task: double
// row: 8
// rejected: out_of_bounds: on n = 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;  //+
    out[i] = 2.0f * x[i] + 1.0f;
}
