#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const double* x, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * (1.0 + x[i]);
}
