// Launches as many blocks as the given size needs.
// task: double
// row: 8
// rejected: wrong: on n = 
#pragma optiml launch k grid(n / 256 + (n < 256)) block(256)  //-
#pragma optiml launch k grid(cdiv(n, 256)) block(256)  //+
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;
}
