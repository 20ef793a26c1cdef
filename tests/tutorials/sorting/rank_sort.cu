// Rank sort: count what is smaller, ties by position. Tiled through shared memory.
#define TILE 64
__global__ void rank_sort(const double *x, double *sorted, int n)
{
    __shared__ double tile[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    double mine = i < n ? x[i] : 0;
    int rank = 0;
    for (int base = 0; base < n; base += TILE) {
        if (base + threadIdx.x < n) tile[threadIdx.x] = x[base + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < TILE && base + k < n; ++k)
            rank += tile[k] < mine || (tile[k] == mine && base + k < i);
        __syncthreads();
    }
    if (i < n) sorted[rank] = mine;
}
#pragma optiml launch rank_sort grid(cdiv(n, TILE_)) block(TILE_)
