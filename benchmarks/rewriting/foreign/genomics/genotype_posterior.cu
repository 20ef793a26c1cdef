// Log likelihoods of the ten diploid genotypes at a site, base by base of the pileup.
#define GENOTYPES 10
#pragma optiml launch genotype grid(cdiv(sites, 64)) block(64)
__global__ void genotype(const float *emission, float *likelihood, float *called, int sites, int depth)
{
    int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= sites) return;
    float ll[GENOTYPES];
    for (int g = 0; g < GENOTYPES; g++) ll[g] = 0.0f;
    for (int read = 0; read < depth; read++)
        for (int g = 0; g < GENOTYPES; g++)
            ll[g] += logf(0.01f + 0.98f * emission[(site * depth + read) * GENOTYPES + g]);
    float best = ll[0];
    for (int g = 0; g < GENOTYPES; g++)
    {
        likelihood[site * GENOTYPES + g] = ll[g];
        best = fmaxf(best, ll[g]);
    }
    called[site] = best;
}
