#pragma optiml zero(out)
#pragma optiml launch counted grid(min(cdiv(n, 256), 2 * sm_count)) block(256)
__global__ void counted(const int* x, int* out, int n) {
    __shared__ int own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&own[x[i]], 1);
    }
    __syncthreads();
    if (threadIdx.x < 64 && own[threadIdx.x] > 0) atomicAdd(&out[threadIdx.x], own[threadIdx.x]);
}
