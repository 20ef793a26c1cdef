// Expression of genes over cells, log(1 + count), to mean 0 and deviation 1.
#pragma optiml launch zscore grid(cdiv(genes, 128)) block(128)
__global__ void zscore(const float *counts, float *z, int genes, int cells)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= genes) return;
    float mu = 0.0f;
    for (int c = 0; c < cells; c++) mu += log1pf(counts[g * cells + c]);
    mu = mu / (float)cells;
    float var = 0.0f;
    for (int c = 0; c < cells; c++)
    {
        float d = log1pf(counts[g * cells + c]) - mu;
        var += d * d;
    }
    float inv = rsqrtf(var / (float)cells + 1e-6f);
    for (int c = 0; c < cells; c++)
        z[g * cells + c] = (log1pf(counts[g * cells + c]) - mu) * inv;
}
