#include <cooperative_groups.h>
using namespace cooperative_groups;

// Any group can run this one.
__device__ int reduce_sum(thread_group g, int *temp, int val)
{
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        temp[lane] = val;
        g.sync();
        if (lane < i) val += temp[lane + i];
        g.sync();
    }
    return val;
}

template <int tile_sz>
__device__ float reduce_sum_tile_shfl(thread_block_tile<tile_sz> g, float val)
{
#pragma unroll
    for (int i = g.size() / 2; i > 0; i /= 2) val += g.shfl_down(val, i);
    return val;
}

#pragma optiml launch row_sums grid(cdiv(rows, 8)) block(64) shared(64 * sizeof_int)
__global__ void row_sums(const int *a, const float *b, int *ints, float *floats, int rows)
{
    extern __shared__ int temp[];
    auto tile = tiled_partition<8>(this_thread_block());
    int tile_id = threadIdx.x / 8;
    int row = blockIdx.x * 8 + tile_id;
    int val = row < rows ? a[8 * row + tile.thread_rank()] : 0;
    int total = reduce_sum(tile, temp + 8 * tile_id, val);
    float x = row < rows ? b[8 * row + tile.thread_rank()] : 0.0f;
    x = reduce_sum_tile_shfl<8>(tile, x);
    if (tile.thread_rank() == 0 && row < rows) {
        ints[row] = total;
        floats[row] = x;
    }
}
