// Literals without an f.
// task: scale
// devices: emulated cuda
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2.0 * x[i] + 1.0;    //-!
        out[i] = 2.0f * x[i] + 1.0f;  //+
}
