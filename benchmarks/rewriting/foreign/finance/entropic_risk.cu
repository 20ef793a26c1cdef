// Entropic risk of portfolios, log(mean(exp(-a * pnl))) / a, without overflow and in one pass.
__global__ void entropic_risk(const float* pnl, float* risk, float aversion, int portfolios, int scenarios) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= portfolios) return;
    float top = -1e30f;
    float sum = 0.0f;
    for (int s = 0; s < scenarios; s++) {
        float loss = -aversion * pnl[p * scenarios + s];
        float higher = fmaxf(top, loss);
        sum = sum * expf(top - higher) + expf(loss - higher);
        top = higher;
    }
    risk[p] = (top + logf(sum / scenarios)) / aversion;
}
#pragma optiml launch entropic_risk grid(cdiv(portfolios, 128)) block(128)
