#pragma optiml zero(bins)
#pragma optiml launch histogram grid(cdiv(n, 64)) block(64)
__global__ void histogram(const int* values, int* bins, int n, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int bin = values[i];
    if (bin >= 0 && bin < count) {
        atomicAdd(&bins[bin], 1);
    }
}
