// Philox 4x32-10, counter based: block of four numbers for each counter.
__device__ uint4 philox_round(uint4 c, uint2 k)
{
    unsigned hi0 = __umulhi(0xD2511F53u, c.x), lo0 = 0xD2511F53u * c.x;
    unsigned hi1 = __umulhi(0xCD9E8D57u, c.z), lo1 = 0xCD9E8D57u * c.z;
    return make_uint4(hi1 ^ c.y ^ k.x, lo1, hi0 ^ c.w ^ k.y, lo0);
}

__device__ uint4 philox(uint4 counter, uint2 key)
{
#pragma unroll
    for (int r = 0; r < 10; ++r) {
        counter = philox_round(counter, key);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

#pragma optiml launch philox_fill grid(cdiv(n / 4, 64)) block(64)
__global__ void philox_fill(uint4 *out, unsigned int seed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) out[i] = philox(make_uint4(i, 0, 0, 0), make_uint2(seed, 0));
}
