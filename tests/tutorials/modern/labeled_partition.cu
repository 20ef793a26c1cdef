#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// Threads of a warp with the same key form a group and add up together.
#pragma optiml zero(sums)
#pragma optiml launch sum_by_key grid(cdiv(n, 64)) block(64)
__global__ void sum_by_key(const int *keys, const int *values, int *sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    auto active = cg::coalesced_threads();
    auto same = cg::labeled_partition(active, keys[i]);
    int total = cg::reduce(same, values[i], cg::plus<int>());
    if (same.thread_rank() == 0) atomicAdd(&sums[keys[i]], total);
}
