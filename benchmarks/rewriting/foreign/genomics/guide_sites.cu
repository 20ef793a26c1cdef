// Mismatches of a guide of twenty bases at each place of a genome; the genome has 32 bases to a word.
typedef unsigned long long u64;

__device__ __forceinline__ int base_at(const u64 *seq, int i) { return (int)((seq[i >> 5] >> ((i & 31) << 1)) & 3ULL); }

__global__ void guide_sites(const u64 *genome, u64 guide, unsigned char *mismatches, int places)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= places) return;
    int wrong = 0;
    for (int i = 0; i < 20; ++i)
        wrong += base_at(genome, at + i) != (int)((guide >> (2 * i)) & 3);
    mismatches[at] = wrong;
}
#pragma optiml launch guide_sites grid(cdiv(places, 256)) block(256)
