// Short rate of several mean-reverting factors, a path a thread, and what a bank account earns on it.
#define FACTORS 16
#pragma optiml launch short_rate grid(cdiv(paths, 64)) block(64)
__global__ void short_rate(const float* noise, const float* speed, const float* vol, float* account, float dt,
                           int paths, int steps) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= paths) return;
    float x[FACTORS];
    for (int f = 0; f < FACTORS; f++) x[f] = 0.0f;
    float earned = 0.0f;
    for (int s = 0; s < steps; s++) {
        float rate = 0.02f;
        for (int f = 0; f < FACTORS; f++) {
            x[f] += -speed[f] * x[f] * dt + vol[f] * noise[(p * steps + s) * FACTORS + f];
            rate += x[f];
        }
        earned += rate * dt;
    }
    account[p] = expf(earned);
}
