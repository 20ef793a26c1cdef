// The reductions that sm_80 and later do in one instruction.
#pragma optiml launch warp_stats grid(cdiv(n, 128)) block(128)
__global__ void warp_stats(const int *x, int *sums, int *smallest, unsigned *xors, int *uniform, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    int sum = __reduce_add_sync(0xffffffff, v);
    int low = __reduce_min_sync(0xffffffff, v);
    unsigned mix = __reduce_xor_sync(0xffffffff, (unsigned)v);
    int same = 0;
    __match_all_sync(0xffffffff, v, &same);
    if (threadIdx.x % 32 == 0) {
        sums[i / 32] = sum;
        smallest[i / 32] = low;
        xors[i / 32] = mix;
        uniform[i / 32] = same != 0;
    }
}
