#define BLOCK 256

#pragma optiml scratch first i4[cols]
#pragma optiml scratch second i4[cols]
#pragma optiml launch pathfinder grid(cdiv(cols, BLOCK - 2 * pyramid_height)) block(BLOCK) \
    args(wall, wall, first, rows, cols, pyramid_height, 0)
#pragma optiml launch pathfinder grid(cdiv(cols, BLOCK - 2 * pyramid_height)) block(BLOCK) \
    args(wall, first, second, rows, cols, pyramid_height, pyramid_height)
#pragma optiml launch pathfinder grid(cdiv(cols, BLOCK - 2 * pyramid_height)) block(BLOCK) \
    args(wall, second, best, rows, cols, pyramid_height, 2 * pyramid_height)
// what the cheapest path to each cell of a row costs, as many rows down as the pyramid is high;
// after each row a column at either side of the block is right no more
__global__ void pathfinder(const int* wall, const int* before, int* after, int rows, int cols,
                           int pyramid_height, int start) {
    __shared__ int cost[BLOCK];
    __shared__ int next[BLOCK];
    int tx = threadIdx.x;
    int x = (BLOCK - 2 * pyramid_height) * blockIdx.x + tx - pyramid_height;
    bool inside = x >= 0 && x < cols;
    if (inside) cost[tx] = before[x];
    __syncthreads();
    // beyond the wall a neighbour is the cell itself
    int left = x > 0 ? tx - 1 : tx;
    int right = x < cols - 1 ? tx + 1 : tx;
    int steps = min(pyramid_height, rows - 1 - start);
    for (int i = 1; i <= steps; i++) {
        bool computed = inside && tx >= i && tx < BLOCK - i;
        if (computed) {
            int least = min(cost[tx], min(cost[left], cost[right]));
            next[tx] = least + wall[(start + i) * cols + x];
        }
        __syncthreads();
        if (computed) cost[tx] = next[tx];
        __syncthreads();
    }
    if (inside && tx >= pyramid_height && tx < BLOCK - pyramid_height) after[x] = cost[tx];
}
