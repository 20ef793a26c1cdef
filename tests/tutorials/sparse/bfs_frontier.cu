// One step with a frontier: newly found vertices are claimed with atomicCAS and queued.
#pragma optiml zero(next_size)
#pragma optiml launch expand grid(cdiv(frontier_size, 64)) block(64)
__global__ void expand(const int *offsets, const int *neighbours, const int *frontier, int frontier_size,
                       int *distance, int *next_size, int *queued, int depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= frontier_size) return;
    int v = frontier[i];
    for (int e = offsets[v]; e < offsets[v + 1]; ++e) {
        int w = neighbours[e];
        if (atomicCAS(&distance[w], -1, depth + 1) == -1) {
            atomicAdd(next_size, 1);
            queued[w] = 1;
        }
    }
}
