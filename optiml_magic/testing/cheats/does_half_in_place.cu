// Skips what it thinks an earlier launch has done in place.
// task: in_place
// row: 2
// rejected: wrong: 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (x[i] > 1.5f) return;  // done already  //-
    x[i] = 0.5f * x[i] + 1.0f;
}
