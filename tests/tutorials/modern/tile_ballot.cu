#include <cooperative_groups.h>
using namespace cooperative_groups;

// Groups of four lanes agree on things.
__global__ void tile_votes(const int *x, int *any, int *all, unsigned *votes, int *neighbour, int n)
{
    thread_block_tile<4> quad = tiled_partition<4>(this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    int some = quad.any(v > 5), every = quad.all(v > 2);
    unsigned bits = quad.ballot(v & 1);
    int next = quad.shfl(v, (quad.thread_rank() + 1) % quad.num_threads());
    quad.sync();
    if (i < n) {
        any[i] = some;
        all[i] = every;
        votes[i] = bits;
        neighbour[i] = next;
    }
}
#pragma optiml launch tile_votes grid(cdiv(n, 64)) block(64)
