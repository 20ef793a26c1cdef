#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

#pragma optiml launch reverse_rows grid(rows) block(64)
__global__ void reverse_rows(const int *in, int *out, int rows)
{
    __shared__ int row[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, row, in + blockIdx.x * 64, sizeof(int) * 64);
    cg::wait(block);
    out[blockIdx.x * 64 + block.thread_rank()] = row[63 - block.thread_rank()];
}
