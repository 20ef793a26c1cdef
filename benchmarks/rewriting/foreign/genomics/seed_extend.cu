// Seeds of reads extended to the right as long as the bases are those of the reference.
#define BASE(s, i) (((s)[(i) >> 4] >> (((i) & 15) * 2)) & 3u)

__global__ void seed_extend(const unsigned *reference, const unsigned *reads, const int *at, int *extent,
                            int seeds, int length)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= seeds) return;
    const unsigned *read = reads + s * ((length + 15) / 16);
    int n = 0;
    while (n < length && BASE(read, n) == BASE(reference, at[s] + n))
        ++n;
    extent[s] = n;
}
#pragma optiml launch seed_extend grid(cdiv(seeds, 128)) block(128)
