// Level-synchronous breadth-first search; a step a launch, a fixed number of steps.
#pragma optiml launch init_levels grid(cdiv(num_vertices, 128)) block(128) args(level, source, num_vertices)
#pragma optiml launch bfs_step grid(cdiv(num_vertices, 128)) block(128) args(edges, dest, level, 0, num_vertices)
#pragma optiml launch bfs_step grid(cdiv(num_vertices, 128)) block(128) args(edges, dest, level, 1, num_vertices)
#pragma optiml launch bfs_step grid(cdiv(num_vertices, 128)) block(128) args(edges, dest, level, 2, num_vertices)

__global__ void init_levels(int *level, int source, int num_vertices)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < num_vertices) level[v] = v == source ? 0 : INT_MAX;
}

__global__ void bfs_step(const int *edges, const int *dest, int *level, int depth, int num_vertices)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < num_vertices && level[v] == depth) {
        for (int e = edges[v]; e < edges[v + 1]; ++e) {
            if (level[dest[e]] == INT_MAX) level[dest[e]] = depth + 1;
        }
    }
}
