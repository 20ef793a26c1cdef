// A warp for each row.
__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int m = 16; m > 0; m >>= 1) v += __shfl_xor_sync(0xffffffff, v, m, 32);
    return v;
}

#pragma optiml launch gemv grid(cdiv(rows, 4)) block(32, 4)
__global__ void gemv(const float *__restrict__ A, const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0.f;
    for (int c = threadIdx.x; c < cols; c += warpSize) sum += __ldg(&A[row * cols + c]) * __ldg(x + c);
    sum = warp_sum(sum);
    if (threadIdx.x == 0) y[row] = sum;
}
