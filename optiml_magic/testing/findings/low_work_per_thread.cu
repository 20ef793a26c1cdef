// A thread for each element; in the other a thread has sixteen.
// task: scale_many
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)       //-
#pragma optiml launch k grid(cdiv(n, 4096)) block(256)      //+
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;                 //-
    for (; i < n; i += gridDim.x * blockDim.x)              //+
        out[i] = 2.0f * x[i] + 1.0f;                        //+
}
