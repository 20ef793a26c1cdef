// Monte Carlo pi; every thread has a generator of its own.
class Lcg {
    unsigned int state;

public:
    __device__ Lcg(unsigned int seed) : state(seed) {}
    __device__ unsigned int next() { return state = 1664525u * state + 1013904223u; }
    __device__ float uniform() { return (next() >> 8) * (1.0f / 16777216.0f); }
};

#pragma optiml zero(hits)
#pragma optiml launch pi_lcg grid(cdiv(threads, 128)) block(128)
__global__ void pi_lcg(const unsigned int *seeds, unsigned long long *hits, int draws, int threads)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= threads) return;
    Lcg rng(seeds[i]);
    int inside = 0;
    for (int k = 0; k < draws; k++) {
        float x = rng.uniform(), y = rng.uniform();
        if (x * x + y * y <= 1.0f) inside++;
    }
    atomicAdd(hits, (unsigned long long)inside);
}
