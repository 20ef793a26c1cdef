// Streams through its arrays at the speed of the memory; the other has too few threads for that.
// task: scale_all
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)  //-
#pragma optiml launch k grid(16) block(256)            //+
__global__ void k(const float* x, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = 2.0f * x[i] + 1.0f;  //!
}
