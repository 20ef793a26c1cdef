// Odd-even transposition sort, one phase a launch.
#pragma optiml repeat(cdiv(n, 2))
#pragma optiml launch phase grid(cdiv(n / 2, 32)) block(32) args(data, 0, n)
#pragma optiml launch phase grid(cdiv(n / 2, 32)) block(32) args(data, 1, n)
__global__ void phase(int *data, int odd, int n)
{
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + odd;
    if (i + 1 < n && data[i] > data[i + 1]) {
        int t = data[i];
        data[i] = data[i + 1];
        data[i + 1] = t;
    }
}
