#pragma optiml zero(counts)
#pragma optiml launch count_if grid(cdiv(n, 128)) block(128)
__global__ void count_if(const float *x, int *counts, float threshold, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool above = i < n && x[i] > threshold;
    unsigned votes = __ballot_sync(0xffffffff, above);
    if ((threadIdx.x & 31) == 0) atomicAdd(&counts[0], __popc(votes));
    int in_block = __syncthreads_count(above);
    if (threadIdx.x == 0) atomicMax(&counts[1], in_block);
    if (__all_sync(0xffffffff, above) && (threadIdx.x & 31) == 0) atomicAdd(&counts[2], 1);
    if (!__any_sync(0xffffffff, above) && (threadIdx.x & 31) == 0) atomicAdd(&counts[3], 1);
}
