#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Warp-aggregated atomics: one atomic for all the lanes that are active.
__device__ int atomicAggInc(int *ctr)
{
    auto g = cg::coalesced_threads();
    int prev;
    if (g.thread_rank() == 0) prev = atomicAdd(ctr, g.size());
    prev = g.thread_rank() + g.shfl(prev, 0);
    return prev;
}

#pragma optiml zero(count)
#pragma optiml zero(seen)
#pragma optiml launch filter_k grid(cdiv(n, 256)) block(256)
__global__ void filter_k(const int *src, int *seen, int *count, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    if (src[i] % 3 == 0) {
        int slot = atomicAggInc(count);
        atomicAdd(&seen[slot], 1);  // every slot is taken once
    }
}
