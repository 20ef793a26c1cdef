template <typename T> struct Limits;
template <> struct Limits<int> {
    static __device__ int lowest() { return INT_MIN; }
    static __device__ int highest() { return INT_MAX; }
};

#pragma optiml launch column_min_max<int> grid(cdiv(cols, 32)) block(32, 8)
template <typename T>
__global__ void column_min_max(const T *a, T *lows, T *highs, int rows, int cols)
{
    __shared__ T low[8][32], high[8][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = blockIdx.x * 32 + tx;
    T lo = Limits<T>::highest(), hi = Limits<T>::lowest();
    if (col < cols)
        for (int row = ty; row < rows; row += 8) {
            lo = min(lo, a[row * cols + col]);
            hi = max(hi, a[row * cols + col]);
        }
    low[ty][tx] = lo;
    high[ty][tx] = hi;
    __syncthreads();
    if (ty == 0 && col < cols) {
        for (int k = 1; k < 8; ++k) {
            lo = min(lo, low[k][tx]);
            hi = max(hi, high[k][tx]);
        }
        lows[col] = lo;
        highs[col] = hi;
    }
}
