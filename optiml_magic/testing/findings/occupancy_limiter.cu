// 46 KB of shared memory for 64 threads, of which they use 256 bytes.
// task: scale
// devices: emulated cuda
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n) {
    __shared__ float stage[11500];  //-
    __shared__ float stage[64];     //+
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) stage[threadIdx.x] = x[i];
    __syncthreads();
    if (i < n) out[i] = 2.0f * stage[threadIdx.x] + 1.0f;
}
