// Reads four at a time and forgets the rest, of which the given size has none.
// task: double
// row: 6
// rejected: wrong: on n = 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 4 * i; j < n / 4 * 4 && j < 4 * i + 4; ++j) out[j] = 2.0f * x[j] + 1.0f;  //-
    for (int j = 4 * i; j < n && j < 4 * i + 4; ++j) out[j] = 2.0f * x[j] + 1.0f;  //+
}
