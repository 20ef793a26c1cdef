// Power iteration over incoming edges, the two rank vectors swapped after each round.
#pragma optiml scratch other float[n]
#pragma optiml launch pagerank grid(cdiv(n, 64)) block(64) args(offsets, sources, out_degree, rank, other, n) repeat(10) swap(rank, other)
__global__ void pagerank(const int *offsets, const int *sources, const int *out_degree, float *rank, float *next, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) {
        float sum = 0.0f;
        for (int e = offsets[v]; e < offsets[v + 1]; e++) sum += rank[sources[e]] / out_degree[sources[e]];
        next[v] = 0.15f / n + 0.85f * sum;
    }
}
