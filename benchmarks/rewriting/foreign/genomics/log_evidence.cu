// Log evidence of each read over its haplotypes, added up as logarithms.
__global__ void log_evidence(const float *loglik, float *evidence, int reads, int haplotypes)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= reads) return;
    float top = loglik[r * haplotypes];
    float total = 1.0f;
    for (int h = 1; h < haplotypes; h++)
    {
        float l = loglik[r * haplotypes + h];
        if (l > top)
        {
            total = total * expf(top - l) + 1.0f;
            top = l;
        }
        else
            total += expf(l - top);
    }
    evidence[r] = top + logf(total);
}
#pragma optiml launch log_evidence grid(cdiv(reads, 256)) block(256)
