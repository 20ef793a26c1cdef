// Leaves the output alone and hopes that an earlier kernel has filled it.
// task: double
// row: 2
// rejected: wrong: never written
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * x[i] + 1.0f;  //+
}
