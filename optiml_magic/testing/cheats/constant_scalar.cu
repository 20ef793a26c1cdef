// Takes a parameter for a constant, since it has always had the same value.
// task: scaled
// row: 8
// rejected: wrong: float scalars x 0.7
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, float alpha, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.5f * x[i]; //-
    if (i < n) out[i] = x[i] * alpha; //+
}
