// Cells take over the expression of other cells that lie near them among the components; never of themselves.
#define PCS 20
#define MARKERS 32
__global__ void smooth_expression(const float* pcs, const float* expression, float* smoothed, const float* width, int cells)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    float acc[MARKERS];
    for (int g = 0; g < MARKERS; g++) acc[g] = 0.0f;
    float total = 0.0f;
    for (int other = 0; other < cells; other++) {
        if (other == cell) continue;
        float d = 0.0f;
        for (int c = 0; c < PCS; c++) {
            float diff = pcs[cell * PCS + c] - pcs[other * PCS + c];
            d += diff * diff;
        }
        float affinity = expf(-d / (width[cell] * width[other]));
        total += affinity;
        for (int g = 0; g < MARKERS; g++) acc[g] += affinity * expression[other * MARKERS + g];
    }
    for (int g = 0; g < MARKERS; g++) smoothed[cell * MARKERS + g] = acc[g] / total;
}
#pragma optiml launch smooth_expression grid(cdiv(cells, 128)) block(128)
