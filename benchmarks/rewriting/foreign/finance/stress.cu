// Returns of portfolios in each scenario, per unit of what they hold long and short.
__global__ void stress(const float* holding, const float* shock, float* result, int portfolios, int assets, int scenarios) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    int p = blockIdx.y * blockDim.y + threadIdx.y;
    if (s >= scenarios || p >= portfolios) return;
    float gross = 0.0f;
    for (int a = 0; a < assets; ++a) gross += fabsf(holding[p * assets + a]);
    float pnl = 0.0f;
    for (int a = 0; a < assets; ++a) pnl += holding[p * assets + a] * shock[a * scenarios + s];
    result[p * scenarios + s] = gross > 0.0f ? pnl / gross : 0.0f;
}
#pragma optiml launch stress grid(cdiv(scenarios, 32), cdiv(portfolios, 8)) block(32, 8)
