// Value and index in one 64-bit word, so that one atomic finds both.
__device__ unsigned int ordered(float f)
{
    unsigned int u = __float_as_uint(f);
    return (u & 0x80000000u) ? ~u : (u | 0x80000000u);
}

#pragma optiml init(best) = 0
#pragma optiml launch argmax grid(cdiv(n, 256)) block(256)
__global__ void argmax(const float *x, unsigned long long *best, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long key = 0;
    if (i < n) key = ((unsigned long long)ordered(x[i]) << 32) | (0xffffffffu - i);
    for (int lane = 16; lane; lane >>= 1) {
        unsigned long long other = __shfl_xor_sync(0xffffffffu, key, lane);
        key = other > key ? other : key;
    }
    if (threadIdx.x % 32 == 0) atomicMax(best, key);
}
