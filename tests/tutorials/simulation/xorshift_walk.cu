struct XorShift64 {
    unsigned long long s;
    __device__ unsigned long long operator()()
    {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        return s;
    }
};

// A random walk for each thread: the step comes from the top two bits.
__global__ void walk(const unsigned long long *seeds, int2 *ends, int steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        XorShift64 rng{seeds[i]};
        int2 at = make_int2(0, 0);
        for (int k = 0; k < steps; ++k) {
            switch (rng() >> 62) {
            case 0: at.x++; break;
            case 1: at.x--; break;
            case 2: at.y++; break;
            default: at.y--;
            }
        }
        ends[i] = at;
    }
}
