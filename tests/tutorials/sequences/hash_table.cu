// Linear probing: a slot is claimed with atomicCAS, equal keys add up their values.
#define EMPTY 0xffffffffu

__device__ unsigned hash(unsigned k, unsigned capacity)
{
    k ^= k >> 16;
    k *= 0x85ebca6bu;
    k ^= k >> 13;
    return k & (capacity - 1);
}

__global__ void clear(unsigned *keys, unsigned *values, unsigned capacity)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < capacity) {
        keys[i] = EMPTY;
        values[i] = 0;
    }
}

__global__ void insert(const unsigned *in, unsigned *keys, unsigned *values, unsigned capacity, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = in[i], slot = hash(key, capacity);
    while (true) {
        unsigned seen = atomicCAS(&keys[slot], EMPTY, key);
        if (seen == EMPTY || seen == key) {
            atomicAdd(&values[slot], 1u);
            return;
        }
        slot = (slot + 1) & (capacity - 1);
    }
}

__global__ void lookup(const unsigned *queries, const unsigned *keys, const unsigned *values, unsigned *counts,
                       unsigned capacity, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    unsigned slot = hash(queries[i], capacity);
    while (keys[slot] != EMPTY && keys[slot] != queries[i]) slot = (slot + 1) & (capacity - 1);
    counts[i] = keys[slot] == queries[i] ? values[slot] : 0;
}

#pragma optiml scratch keys u4[capacity]
#pragma optiml scratch values u4[capacity]
#pragma optiml launch clear grid(cdiv(capacity, 128)) block(128)
#pragma optiml launch insert grid(cdiv(n, 64)) block(64)
#pragma optiml launch lookup grid(cdiv(m, 64)) block(64)
