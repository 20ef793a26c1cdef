#define FULL_MASK 0xffffffffu

__device__ int lane_id()
{
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

__device__ int warp_inclusive_scan(int value)
{
    int lane = lane_id();
#pragma unroll
    for (int delta = 1; delta < 32; delta <<= 1) {
        int up = __shfl_up_sync(FULL_MASK, value, delta);
        if (lane >= delta) value += up;
    }
    return value;
}

#pragma optiml launch block_scan grid(cdiv(n, 512)) block(512)
__global__ void block_scan(const int *in, int *out, int n)
{
    __shared__ int totals[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int warp = threadIdx.x >> 5;
    int value = warp_inclusive_scan(i < n ? in[i] : 0);
    if (lane_id() == 31) totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int t = threadIdx.x < 16 ? totals[threadIdx.x] : 0;
        t = warp_inclusive_scan(t);
        if (threadIdx.x < 16) totals[threadIdx.x] = t;
    }
    __syncthreads();
    if (warp > 0) value += totals[warp - 1];
    if (i < n) out[i] = value;
}
