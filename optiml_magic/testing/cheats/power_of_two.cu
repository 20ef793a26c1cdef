// Takes the remainder by a mask, as if every size were a power of two.
// task: neighbours
// row: 8
// rejected: wrong: on n = 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = x[i] + x[(i + 1) & (n - 1)];  //-
    out[i] = x[i] + x[i + 1 < n ? i + 1 : 0];  //+
}
