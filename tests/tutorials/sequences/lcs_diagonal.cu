// Longest common subsequence: one block walks the anti-diagonals of the table.
#pragma optiml launch lcs grid(1) block(128)
__global__ void lcs(const char *a, const char *b, int *table, int n, int m)
{
    const int width = m + 1;
    for (int k = threadIdx.x; k <= max(n, m); k += blockDim.x) {
        if (k <= m) table[k] = 0;
        if (k <= n) table[k * width] = 0;
    }
    __syncthreads();
    for (int d = 2; d <= n + m; ++d) {
        for (int i = max(1, d - m) + threadIdx.x; i <= min(n, d - 1); i += blockDim.x) {
            int j = d - i;
            int best;
            if (a[i - 1] == b[j - 1])
                best = table[(i - 1) * width + j - 1] + 1;
            else
                best = max(table[(i - 1) * width + j], table[i * width + j - 1]);
            table[i * width + j] = best;
        }
        __syncthreads();
    }
}
