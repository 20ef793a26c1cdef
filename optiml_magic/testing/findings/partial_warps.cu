// Blocks of 40 threads take two warps each.
// task: scale
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 40)) block(40)  //-!
#pragma optiml launch k grid(cdiv(n, 64)) block(64)  //+
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;
}
