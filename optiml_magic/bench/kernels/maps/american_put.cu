#pragma optiml scratch walk f4[steps * paths]
#pragma optiml zero(price)
#pragma optiml launch walk_paths grid(cdiv(paths, 256)) block(256)
#pragma optiml launch exercise grid(cdiv(paths, 256)) block(256)
// samples are normal numbers, [steps, paths]; a thread a path
__global__ void walk_paths(const float* samples, float* walk, float start, float rate,
                           float volatility, float dt, int steps, int paths) {
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= paths) return;
    float drift = (rate - 0.5f * volatility * volatility) * dt;
    float spread = volatility * sqrtf(dt);
    float price = start;
    for (int step = 0; step < steps; step++) {
        price = price * expf(drift + spread * samples[step * paths + path]);
        walk[step * paths + path] = price;
    }
}

// held or exercised, from the last step back; beta estimates what holding on is worth
__global__ void exercise(const float* walk, const float* beta, float* price, float strike,
                         float rate, float dt, int steps, int paths) {
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= paths) return;
    float discount = expf(-rate * dt);
    float cash = fmaxf(strike - walk[(steps - 1) * paths + path], 0.0f);
    for (int step = steps - 2; step >= 0; step--) {
        float s = walk[step * paths + path];
        float payoff = fmaxf(strike - s, 0.0f);
        float held = beta[3 * step] + beta[3 * step + 1] * s + beta[3 * step + 2] * s * s;
        cash = cash * discount;
        if (payoff > 0.0f && payoff > held) {
            cash = payoff;
        }
    }
    atomicAdd(price, cash * discount / paths);
}
