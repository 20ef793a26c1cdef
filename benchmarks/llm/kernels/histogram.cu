// How often each value of a byte is there.
__global__ void histogram(const unsigned char* data, int* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&counts[data[i]], 1);
    }
}
#pragma optiml zero(counts)
#pragma optiml launch histogram grid(cdiv(n, 256)) block(256)
