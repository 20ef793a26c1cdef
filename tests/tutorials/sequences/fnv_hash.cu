__host__ __device__ inline unsigned long long fnv1a(const unsigned char *data, size_t length)
{
    unsigned long long hash = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < length; ++i) {
        hash ^= data[i];
        hash *= 0x100000001b3ULL;
    }
    return hash;
}

__global__ void hash_keys(const unsigned char *keys, unsigned long long *hashes, size_t key_length, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) hashes[i] = fnv1a(keys + i * key_length, key_length);
}
