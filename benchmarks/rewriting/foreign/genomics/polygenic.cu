// Polygenic risk: each person's dosages weighted by effects, for a handful of traits.
__global__ void polygenic(const signed char *dosage, const float *effect, const float *base, float *risk,
                          int people, int variants, int traits)
{
    int person = blockIdx.x * blockDim.x + threadIdx.x;
    if (person >= people) return;
    for (int t = 0; t < traits; t++) {
        float score = 0.0f;
        for (int v = 0; v < variants; v++)
            score += dosage[(size_t)person * variants + v] * effect[v * traits + t];
        risk[person * traits + t] = 1.0f / (1.0f + expf(-(base[t] + score)));
    }
}
#pragma optiml launch polygenic grid(cdiv(people, 128)) block(128)
