// Channel of the last 55 days: how far the close is between the lowest low and the highest high.
#define DAYS 55
__global__ void breakout(const float* high, const float* low, const float* close, float* place, int assets, int days) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    const int a = blockIdx.y * blockDim.y + threadIdx.y;
    if (d >= days || a >= assets) return;
    float top = -1e30f, bottom = 1e30f;
    for (int back = 0; back < DAYS; ++back) {
        if (d - back < 0) continue;
        top = fmaxf(top, high[a * days + d - back]);
        bottom = fminf(bottom, low[a * days + d - back]);
    }
    place[a * days + d] = (close[a * days + d] - bottom) / (top - bottom + 1e-6f);
}
#pragma optiml launch breakout grid(cdiv(days, 64), cdiv(assets, 4)) block(64, 4)
