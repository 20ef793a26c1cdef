__device__ inline float cnd(float d)
{
    return 0.5f * erfcf(-d * 0.70710678f);
}

__global__ void black_scholes(float *call, float *put, const float *price, const float *strike, const float *years,
                              float riskfree, float volatility, int optN)
{
    const int opt = blockDim.x * blockIdx.x + threadIdx.x;
    if (opt < optN) {
        float S = price[opt], X = strike[opt], T = years[opt];
        float sqrtT = __fsqrt_rn(T);
        float d1 = (__logf(S / X) + (riskfree + 0.5f * volatility * volatility) * T) / (volatility * sqrtT);
        float d2 = d1 - volatility * sqrtT;
        float expRT = expf(-riskfree * T);
        call[opt] = S * cnd(d1) - X * expRT * cnd(d2);
        put[opt] = X * expRT * cnd(-d2) - S * cnd(-d1);
    }
}
