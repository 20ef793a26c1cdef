// All lanes read the same weight from global memory; the other keeps the weights in shared memory.
// task: filter
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, const float* w, float* out, int n) {
    __shared__ float own[16];                                    //+
    if (threadIdx.x < 16) own[threadIdx.x] = w[threadIdx.x];     //+
    __syncthreads();                                             //+
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll 1
    for (int j = 0; j < 16; ++j)
        sum += w[j] * x[i + j];    //-!
        sum += own[j] * x[i + j];  //+
    out[i] = sum;
}
