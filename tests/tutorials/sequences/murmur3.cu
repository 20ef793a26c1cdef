#include <cstdint>

__device__ uint32_t rotl32(uint32_t x, int8_t r) { return (x << r) | (x >> (32 - r)); }

__device__ uint32_t fmix32(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x85ebca6b;
    h ^= h >> 13;
    h *= 0xc2b2ae35;
    h ^= h >> 16;
    return h;
}

__global__ void murmur3_32(const uint32_t *blocks, uint32_t *hashes, uint32_t seed, int words, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uint32_t h = seed;
    for (int w = 0; w < words; ++w) {
        uint32_t k = blocks[i * words + w];
        k *= 0xcc9e2d51;
        k = rotl32(k, 15);
        k *= 0x1b873593;
        h ^= k;
        h = rotl32(h, 13);
        h = h * 5 + 0xe6546b64;
    }
    h ^= 4 * words;
    hashes[i] = fmix32(h);
}
