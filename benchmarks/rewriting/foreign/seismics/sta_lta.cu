// Short over long term average of the energy: where it is large an earthquake may begin.
#define NSTA 32
#define NLTA 256
__global__ void sta_lta(const float *trace, float *ratio, int ns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < NLTA || i >= ns) return;
    float sta = 0.0f, lta = 0.0f;
    for (int k = 0; k < NSTA; k++) sta += trace[i - k] * trace[i - k];
    for (int k = 0; k < NLTA; k++) lta += trace[i - k] * trace[i - k];
    ratio[i] = (sta / NSTA) / (lta / NLTA + 1e-9f);
}
#pragma optiml launch sta_lta grid(cdiv(ns, 256)) block(256)
