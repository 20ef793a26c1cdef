template <class T>
__device__ int lower_bound(const T *first, int count, T value)
{
    int begin = 0;
    while (count > 0) {
        int step = count / 2;
        if (first[begin + step] < value) {
            begin += step + 1;
            count -= step + 1;
        } else {
            count = step;
        }
    }
    return begin;
}

__global__ void search_all(const float *sorted, const float *queries, int *where, int n, int m)
{
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q < m) where[q] = lower_bound(sorted, n, queries[q]);
}
