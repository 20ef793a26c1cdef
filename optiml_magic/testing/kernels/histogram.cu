#pragma optiml zero(bins)
#pragma optiml launch histogram grid(min(cdiv(n, 256), 128)) block(256)
__global__ void histogram(const int* values, int* bins, int n) {
    __shared__ int local[256];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        local[bin] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[values[i]], 1);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        if (local[bin] != 0) {
            atomicAdd(&bins[bin], local[bin]);
        }
    }
}
