// Realised volatility over a quarter, of all assets; nothing for days without a whole quarter before.
#define WINDOW 63
__global__ void rolling_volatility(const float* ret, float* vol, int assets, int days) {
    int day = blockIdx.x * blockDim.x + threadIdx.x;
    int asset = blockIdx.y;
    if (day >= days) return;
    float sum = 0.0f, squares = 0.0f;
    for (int k = 0; k < WINDOW; ++k) {
        int d = day - WINDOW + 1 + k;
        float r = d >= 0 ? ret[asset * days + d] : 0.0f;
        sum += r;
        squares += r * r;
    }
    float mean = sum / WINDOW;
    vol[asset * days + day] = sqrtf(fmaxf(squares / WINDOW - mean * mean, 0.0f) * 252.0f);
}
#pragma optiml launch rolling_volatility grid(cdiv(days, 128), assets) block(128)
