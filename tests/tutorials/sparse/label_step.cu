// Label propagation with a flag that says whether anything changed.
#pragma optiml zero(changed)
#pragma optiml launch propagate grid(cdiv(n, 256)) block(256)
__global__ void propagate(const int *offsets, const int *neighbours, const int *labels, int *next, int *changed, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int smallest = labels[v];
    for (int e = offsets[v]; e < offsets[v + 1]; e++) smallest = min(smallest, labels[neighbours[e]]);
    next[v] = smallest;
    if (smallest != labels[v]) *changed = 1;
}
