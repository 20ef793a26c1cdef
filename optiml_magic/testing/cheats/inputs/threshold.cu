#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* x, bool* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] > 0.5f;
}
