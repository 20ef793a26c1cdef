// A lock for each block, taken by its first thread.
__device__ int lock = 0;

#pragma optiml zero(total)
#pragma optiml launch locked_add grid(cdiv(n, 32)) block(32)
__global__ void locked_add(const double *x, volatile double *total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double v = i < n ? x[i] : 0.0;
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
    if (threadIdx.x == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {
        }
        __threadfence();
        *total = *total + v;
        __threadfence();
        atomicExch(&lock, 0);
    }
}
