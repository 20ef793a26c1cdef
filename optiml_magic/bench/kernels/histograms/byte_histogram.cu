#pragma optiml zero(bins)
#pragma optiml launch byte_histogram grid(cdiv(n, 256)) block(256)
__global__ void byte_histogram(const unsigned char* data, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&bins[data[i]], 1);
    }
}
