__device__ unsigned long long reverse_by_hand(unsigned long long v)
{
    unsigned long long r = 0;
    for (int bit = 0; bit < 64; ++bit) {
        r = (r << 1) | (v & 1ull);
        v >>= 1;
    }
    return r;
}

__global__ void reverse64(const unsigned long long *x, unsigned long long *out, int *same, int n)
{
    int tid = threadIdx.x + blockDim.x * blockIdx.x;
    if (tid < n) {
        out[tid] = reverse_by_hand(x[tid]);
        same[tid] = (out[tid] == __brevll(x[tid])) && (__popcll(x[tid]) == __popcll(out[tid]));
    }
}
