// Connected components: hook the larger root below the smaller, then flatten.
#pragma optiml launch make_sets grid(cdiv(n, 128)) block(128)
#pragma optiml launch unite grid(cdiv(edges, 128)) block(128)
#pragma optiml launch flatten grid(cdiv(n, 128)) block(128)

__device__ int find(volatile int *parent, int v)
{
    while (parent[v] != v) v = parent[v];
    return v;
}

__global__ void make_sets(int *parent, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) parent[v] = v;
}

__global__ void unite(int *parent, const int *from, const int *to, int edges)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int a = find(parent, from[e]), b = find(parent, to[e]);
    while (a != b) {
        if (a > b) {
            int t = a;
            a = b;
            b = t;
        }
        int old = atomicMin(&parent[b], a);
        if (old == b) break;
        b = find(parent, old);
        a = find(parent, a);
    }
}

__global__ void flatten(int *parent, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) parent[v] = find(parent, v);
}
