// Alleles that each two people share over all SNPs; a genotype takes two bits of a byte, and 1 says that none was called.
#pragma optiml launch shared_alleles grid(cdiv(people, 16), cdiv(people, 16)) block(16, 16)
__global__ void shared_alleles(const unsigned char* geno, float* same, int people, int bytes)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= people || j >= people) return;
    int equal = 0, called = 0;
    for (int s = 0; s < 4 * bytes; s++) {
        int gi = (geno[i * bytes + s / 4] >> (2 * (s % 4))) & 3;
        int gj = (geno[j * bytes + s / 4] >> (2 * (s % 4))) & 3;
        if (gi == 1 || gj == 1) continue;
        called++;
        equal += gi == gj;
    }
    same[i * people + j] = called ? (float)equal / called : 0.0f;
}
