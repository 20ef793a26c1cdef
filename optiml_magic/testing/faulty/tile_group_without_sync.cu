// A tile of 16 threads exchanges values through shared memory and does not meet in between.
// sanitizer: racecheck
// launch: swap grid=1 block=64 args=x,out
// data: x=in:f4[64] out=out:f4[64]
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void swap(const float* x, float* out) {
    __shared__ float s[64];
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int t = threadIdx.x, base = t - tile.thread_rank();
    s[t] = x[t];  //! race
    tile.sync();  //+
    out[t] = s[base + 15 - tile.thread_rank()];  //! race
}
