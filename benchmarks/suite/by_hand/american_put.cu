// What a path is worth is known at the first step that exercises it, so paths are walked forward alone:
// none is stored, and samples are read once. Four paths a thread, and one addition a block.
#pragma optiml zero(price)
#pragma optiml launch exercise<4> grid(cdiv(paths, 1024)) block(256) if (paths % 4 == 0)
#pragma optiml launch exercise<1> grid(cdiv(paths, 256)) block(256) else
constexpr int AHEAD = 4;

__device__ __forceinline__ float fast_exp2(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

template <int EACH>
struct Samples {
    float of[EACH];
};

template <int EACH>
__device__ __forceinline__ Samples<EACH> samples_of(const float* samples, int step, int paths, int path) {
    const float* at = samples + (size_t)step * paths + path;
    if constexpr (EACH == 4) {
        const float4 four = __ldcs(reinterpret_cast<const float4*>(at));
        return {four.x, four.y, four.z, four.w};
    } else {
        return {__ldcs(at)};
    }
}

template <int EACH>
__global__ void __launch_bounds__(256, 4) exercise(const float* __restrict__ samples, const float* __restrict__ beta,
                                                   float* __restrict__ price, float start, float strike, float rate,
                                                   float volatility, float dt, int steps, int paths) {
    __shared__ float sums[8];
    const int path = (blockIdx.x * 256 + threadIdx.x) * EACH, lane = threadIdx.x % 32;
    const float log2e = 1.44269504f, discount = expf(-rate * dt);
    const float drift = (rate - 0.5f * volatility * volatility) * dt * log2e, spread = volatility * sqrtf(dt) * log2e;
    float sum = 0.0f;
    if (path < paths) {
        float now[EACH], cash[EACH], worth = discount;
        #pragma unroll
        for (int k = 0; k < EACH; k++) now[k] = start, cash[k] = -1.0f;  // not exercised yet
        const auto walk = [&](const Samples<EACH>& moved, int step) {
            const bool last = step == steps - 1;
            const float b0 = last ? 0.0f : __ldg(beta + 3 * step), b1 = last ? 0.0f : __ldg(beta + 3 * step + 1);
            const float b2 = last ? 0.0f : __ldg(beta + 3 * step + 2);
            #pragma unroll
            for (int k = 0; k < EACH; k++) {
                now[k] *= fast_exp2(fmaf(spread, moved.of[k], drift));
                const float payoff = strike - now[k], held = fmaf(now[k], fmaf(b2, now[k], b1), b0);
                // At the last step all are: there is nothing to hold.
                if (cash[k] < 0.0f && payoff > 0.0f && payoff > held) cash[k] = payoff * worth;
            }
            worth *= discount;
        };
        int step = 0;
        for (; step + AHEAD <= steps; step += AHEAD) {
            Samples<EACH> moved[AHEAD];
            #pragma unroll
            for (int k = 0; k < AHEAD; k++) moved[k] = samples_of<EACH>(samples, step + k, paths, path);
            #pragma unroll
            for (int k = 0; k < AHEAD; k++) walk(moved[k], step + k);
        }
        for (; step < steps; step++) walk(samples_of<EACH>(samples, step, paths, path), step);
        #pragma unroll
        for (int k = 0; k < EACH; k++) sum += fmaxf(cash[k], 0.0f);
    }
    #pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
    if (lane == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 8) {
        sum = sums[threadIdx.x];
        #pragma unroll
        for (int apart = 4; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffu, sum, apart);
        if (threadIdx.x == 0) atomicAdd(price, sum / paths);
    }
}
