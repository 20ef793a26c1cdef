// Recursion on the device: the compiler cannot inline all of it.
__device__ __noinline__ int ackermann(int m, int n)
{
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

#pragma optiml launch table grid(1) block(4, 4)
__global__ void table(int *out)
{
    out[threadIdx.y * 4 + threadIdx.x] = ackermann(threadIdx.y % 3, threadIdx.x);
}
