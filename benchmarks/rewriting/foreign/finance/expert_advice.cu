// Exponentially weighted forecasters of each series; those that erred count for less next time.
#define EXPERTS 24
#pragma optiml launch combine grid(cdiv(series, 32)) block(32)
__global__ void combine(const float* forecast, const float* actual, float* combined, float eta, int series, int steps) {
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= series) return;
    float weight[EXPERTS];
    for (int e = 0; e < EXPERTS; e++) weight[e] = 1.0f / EXPERTS;
    for (int t = 0; t < steps; t++) {
        const float* said = forecast + ((size_t)s * steps + t) * EXPERTS;
        float value = 0.0f, all = 0.0f;
        for (int e = 0; e < EXPERTS; e++) {
            value += weight[e] * said[e];
            all += weight[e];
        }
        combined[(size_t)s * steps + t] = value / all;
        float truth = actual[(size_t)s * steps + t];
        for (int e = 0; e < EXPERTS; e++) {
            float miss = said[e] - truth;
            weight[e] = weight[e] / all * expf(-eta * miss * miss);
        }
    }
}
