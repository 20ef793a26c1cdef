#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

#pragma optiml launch tile_scans grid(cdiv(n, 96)) block(96)
__global__ void tile_scans(const int *in, int *inclusive, int *exclusive, int n)
{
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    int a = cg::inclusive_scan(tile, v, cg::plus<int>());
    int b = cg::exclusive_scan(tile, v, cg::plus<int>());
    if (i < n) {
        inclusive[i] = a;
        exclusive[i] = b;
    }
}
