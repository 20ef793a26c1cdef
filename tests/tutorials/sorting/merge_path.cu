// Each thread finds where its diagonal crosses the merge path, then merges a few elements.
__device__ int diagonal_search(const int *a, int na, const int *b, int nb, int diagonal)
{
    int low = max(0, diagonal - nb), high = min(diagonal, na);
    while (low < high) {
        int mid = (low + high) >> 1;
        if (a[mid] <= b[diagonal - 1 - mid])
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

#pragma optiml launch merge grid(cdiv(na + nb, 64 * 7)) block(64)
__global__ void merge(const int *a, int na, const int *b, int nb, int *out)
{
    const int per_thread = 7;
    int begin = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
    if (begin >= na + nb) return;
    int end = min(begin + per_thread, na + nb);
    int i = diagonal_search(a, na, b, nb, begin);
    int j = begin - i;
    for (int k = begin; k < end; ++k) {
        bool from_a = j >= nb || (i < na && a[i] <= b[j]);
        out[k] = from_a ? a[i++] : b[j++];
    }
}
