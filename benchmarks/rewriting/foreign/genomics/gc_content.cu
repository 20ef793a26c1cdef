// Fraction of G and C in windows of 101 bases around each base.
#define HALF 50

__device__ int is_gc(char base) { return base == 'G' || base == 'C'; }

__global__ void gc_content(const char *genome, float *gc, int length)
{
    int pos = blockIdx.x * blockDim.x + threadIdx.x;
    if (pos >= length) return;
    int hits = 0;
    for (int off = -HALF; off <= HALF; off++)
    {
        int at = pos + off;
        if (at < 0 || at >= length) continue;
        hits += is_gc(genome[at]);
    }
    gc[pos] = hits / (2.0f * HALF + 1.0f);
}
#pragma optiml launch gc_content grid(cdiv(length, 256)) block(256)
