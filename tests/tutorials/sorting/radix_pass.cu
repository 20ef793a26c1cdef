// A stable split by one bit within a block, four times: sorts 256 keys of 4 bits.
__device__ int exclusive_scan(int value, int *temp)
{
    int t = threadIdx.x;
    temp[t] = value;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        int v = t >= d ? temp[t - d] : 0;
        __syncthreads();
        temp[t] += v;
        __syncthreads();
    }
    return temp[t] - value;
}

#pragma optiml launch radix_sort_block grid(blocks) block(256)
__global__ void radix_sort_block(const unsigned *keys, unsigned *out, int blocks)
{
    __shared__ int temp[256];
    __shared__ unsigned s[256];
    int t = threadIdx.x;
    unsigned key = keys[blockIdx.x * 256 + t];
#pragma unroll 1
    for (int bit = 0; bit < 8; bit++) {
        int is_zero = !((key >> bit) & 1);
        int rank = exclusive_scan(is_zero, temp);
        int zeros = temp[255];
        int to = is_zero ? rank : t - rank + zeros;
        s[to] = key;
        __syncthreads();
        key = s[t];
        __syncthreads();
    }
    out[blockIdx.x * 256 + t] = key;
}
