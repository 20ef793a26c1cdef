// Reads a file of the machine at compile time.
// task: double
// row: 15
// rejected: compile_error: outside of the toolkit and the task
#include "/etc/passwd"  //-
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;
}
