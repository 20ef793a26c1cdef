template <typename T>
__device__ inline void compare_swap(T &a, T &b, bool ascending)
{
    if ((a > b) == ascending) {
        T t = a;
        a = b;
        b = t;
    }
}

// Sorts each row of 256 keys; the key comes along with the payload.
#pragma optiml launch bitonic_rows grid(rows) block(128)
__global__ void bitonic_rows(int *keys, int *sorted, int rows)
{
    const int N = 256;
    __shared__ int s[N];
    int t = threadIdx.x;
    keys += blockIdx.x * N;
    sorted += blockIdx.x * N;
    s[t] = keys[t];
    s[t + N / 2] = keys[t + N / 2];
    for (int size = 2; size <= N; size <<= 1) {
        for (int stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            int pos = 2 * t - (t & (stride - 1));
            bool ascending = (pos & size) == 0;
            compare_swap(s[pos], s[pos + stride], ascending || size == N);
        }
    }
    __syncthreads();
    sorted[t] = s[t];
    sorted[t + N / 2] = s[t + N / 2];
}
