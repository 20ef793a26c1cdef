// An array of the thread that is indexed at run time; the other computes the address instead.
// task: rotated
// devices: emulated cuda
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int shift, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[16];                     //-
    for (int j = 0; j < 16; ++j)     //-
        v[j] = x[j * n + i];         //-
    for (int j = 0; j < 16; ++j)
        out[j * n + i] = v[(j + shift) % 16];            //-!
        out[j * n + i] = x[((j + shift) % 16) * n + i];  //+
}
