// Waits for a value that never comes.
// task: double
// row: 14
// rejected: timeout: 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (((volatile float*)out)[0] != 12345.0f) {}  //-
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;
}
