// GC at third codon positions (GC3): reading frames begin where each gene says.
__global__ void third_positions(const unsigned char *bases, const int *frame, float *gc3, int genes, int length)
{
    int gene = blockIdx.x * blockDim.x + threadIdx.x;
    if (gene >= genes) return;
    int gc = 0;
    for (int i = 0; i < length; ++i)
    {
        if ((i + frame[gene]) % 3 != 2)
            continue;
        unsigned char b = bases[gene * length + i];
        gc += (b == 1 || b == 2) ? 1 : 0;
    }
    gc3[gene] = 3.0f * gc / length;
}
#pragma optiml launch third_positions grid(cdiv(genes, 64)) block(64)
