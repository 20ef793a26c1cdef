// Sharpe ratio of each strategy.
#pragma optiml launch sharpe grid(cdiv(strategies, 128)) block(128)
__global__ void sharpe(const float* pnl, float* ratio, float riskless, int strategies, int days) {
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= strategies) return;
    float avg = 0.0f;
    for (int d = 0; d < days; ++d) avg += pnl[s * days + d];
    avg /= days;
    float var = 0.0f;
    for (int d = 0; d < days; ++d) {
        var += (pnl[s * days + d] - avg) * (pnl[s * days + d] - avg);
    }
    ratio[s] = (avg - riskless) / sqrtf(var / (days - 1)) * sqrtf(252.0f);
}
