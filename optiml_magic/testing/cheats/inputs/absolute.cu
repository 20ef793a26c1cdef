#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fabsf(x[i]);
}
