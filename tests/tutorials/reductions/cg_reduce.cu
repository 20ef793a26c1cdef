#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

#pragma optiml zero(out)
#pragma optiml launch cg_reduce grid(4) block(256)
__global__ void cg_reduce(const int *in, int *out, int n)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);

    int sum = 0, biggest = INT_MIN;
    for (int i = block.group_index().x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size()) {
        sum += in[i];
        biggest = max(biggest, in[i]);
    }
    sum = cg::reduce(tile, sum, cg::plus<int>());
    biggest = cg::reduce(tile, biggest, cg::greater<int>());
    if (tile.thread_rank() == 0) {
        atomicAdd(&out[0], sum);
        atomicMax(&out[1], biggest);
    }
}
