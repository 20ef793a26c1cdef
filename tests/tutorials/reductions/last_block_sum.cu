// One launch: the last block to finish, found by an atomic counter, adds up the partial sums.
__device__ unsigned int blocks_done = 0;

#pragma optiml scratch partial double[8]
#pragma optiml launch sum_single_pass grid(8) block(128)
__global__ void sum_single_pass(const double *x, volatile double *partial, double *total, int n)
{
    __shared__ double s[128];
    __shared__ bool is_last;
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        unsigned int ticket = atomicInc(&blocks_done, gridDim.x);
        is_last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        double all = 0;
        for (int b = 0; b < gridDim.x; ++b) all += partial[b];
        *total = all;
        blocks_done = 0;
    }
}
