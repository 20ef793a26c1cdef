// Knows the given table of indices, and holds it as a constant.
// task: gather
// row: 8
// rejected: wrong|out_of_bounds: 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, const int* index, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = n - 1 - i;  //-
    int at = index[i];  //+
    out[i] = x[at];
}
