// int8 x int8 -> int32 with four products an instruction; both operands packed along k.
__global__ void gemm_dp4a(const char4 *a, const char4 *b, int *c, int m, int n, int k4)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && col < n) {
        int sum = 0;
        for (int i = 0; i < k4; ++i) sum = __dp4a(a[row * k4 + i], b[col * k4 + i], sum);
        c[row * n + col] = sum;
    }
}
