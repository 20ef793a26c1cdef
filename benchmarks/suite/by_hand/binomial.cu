// A thread an option: 32 rounds at a time, whose last values are in registers as it passes along the prices,
// so that nothing is exchanged. What goes down once is divided out of all rounds: a place is one fma.
#pragma optiml launch binomial grid(cdiv(options, 128)) block(128) shared(128 * 4 * 225)
constexpr int STEPS = 256, THREADS = 128;
constexpr int DEEP = 32;  // rounds of a passage, after the first of which 225 prices are left, in shared memory
constexpr int HALF = STEPS / DEEP / 2;
constexpr float FIRST = 0x1p-64f, SECOND = 0x1p-126f;  // keep what doubles each round within the range of floats

__device__ __forceinline__ float fast_exp2(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

struct Chances {
    float up, down;  // of which the second is one, where it is divided out
    bool divided;
};

template <bool DIVIDED>
__device__ __forceinline__ float folded(const Chances& by, float higher, float lower) {
    return DIVIDED ? fmaf(by.up, higher, lower) : fmaf(by.up, higher, by.down * lower);
}

// Four more prices go through the rounds, each one behind the one before, so that none waits for another.
// The price after those of which there are SEEN goes through as many, and makes something after DEEP.
template <int SEEN, bool DIVIDED>
__device__ __forceinline__ void pushed(const Chances& by, float (&kept)[DEEP], float (&now)[4]) {
    float before[4] = {};
    #pragma unroll
    for (int turn = 0; turn < DEEP + 4; turn++) {
        #pragma unroll
        for (int item = 3; item >= 0; item--) {
            const int round = turn - item, rounds = SEEN + item < DEEP ? SEEN + item : DEEP;
            if (round < 0 || round > rounds) continue;
            const float lower = item > 0 ? before[item > 0 ? item - 1 : 0] : kept[round < DEEP ? round : 0];
            before[item] = now[item];
            if (item == 3 && round < DEEP) kept[round] = now[item];
            if (round < rounds) now[item] = folded<DIVIDED>(by, now[item], lower);
        }
    }
}

template <int SEEN, bool DIVIDED, typename Price>
__device__ __forceinline__ void begun(const Chances& by, float (&kept)[DEEP], float (&now)[4], const Price& price) {
    if constexpr (SEEN <= DEEP) {
        #pragma unroll
        for (int item = 0; item < 4; item++) now[item] = price(SEEN + item);
        pushed<SEEN, DIVIDED>(by, kept, now);
        begun<SEEN + 4, DIVIDED>(by, kept, now, price);
    }
}

// All prices there are, 32 k + 1, through DEEP rounds; those left are stored over those that went.
template <bool DIVIDED, typename Price>
__device__ __forceinline__ float passage(const Chances& by, int prices, float* left, const Price& price) {
    float kept[DEEP], now[4];
    kept[0] = price(0);
    begun<1, DIVIDED>(by, kept, now, price);
    left[0] = now[3];
    float next[4];
    #pragma unroll
    for (int item = 0; item < 4; item++) next[item] = price(min(DEEP + 1, prices - 4) + item);
    #pragma unroll 1
    for (int at = DEEP + 1; at < prices; at += 4) {
        #pragma unroll
        for (int item = 0; item < 4; item++) now[item] = next[item];
        const int then = min(at + 4, prices - 4);
        #pragma unroll
        for (int item = 0; item < 4; item++) next[item] = price(then + item);
        pushed<DEEP, DIVIDED>(by, kept, now);
        #pragma unroll
        for (int item = 0; item < 4; item++) left[(at - DEEP + item) * THREADS] = now[item];
    }
    return left[0];
}

template <bool DIVIDED>
__device__ __forceinline__ float root(const Chances& by, float price, float strike, float step, float* value) {
    const float scale = DIVIDED ? FIRST : 1.0f, doubling = 2.0f * 1.44269504f * step;
    const float start = price * scale, less = strike * scale;
    passage<DIVIDED>(by, STEPS + 1, value, [&](int i) {
        return fmaxf(fmaf(start, fast_exp2(doubling * (i - STEPS / 2)), -less), 0.0f);
    });
    float found = 0.0f;
    #pragma unroll 1
    for (int part = 1; part < 2 * HALF; part++) {
        const int prices = STEPS - part * DEEP + 1;
        if (DIVIDED && part == HALF) {
            #pragma unroll 8
            for (int i = 0; i < prices; i++) value[i * THREADS] *= SECOND;
        }
        found = passage<DIVIDED>(by, prices, value, [&](int i) { return value[i * THREADS]; });
    }
    return found;
}

__global__ void __launch_bounds__(THREADS) binomial(
    const float* __restrict__ price, const float* __restrict__ strike, const float* __restrict__ step,
    const float* __restrict__ up, const float* __restrict__ down, float* __restrict__ call, int options) {
    extern __shared__ float values[];
    const int wanted = blockIdx.x * THREADS + threadIdx.x, option = min(wanted, options - 1);
    float* value = values + threadIdx.x;
    const float now = price[option], then = strike[option], each = step[option];
    const float higher = up[option], lower = down[option], ratio = higher / lower;
    const bool tame = ratio > 0.9f && ratio < 1.1f && fabsf(now) < 0x1p20f && fabsf(then) < 0x1p30f &&
                      fabsf(each) < 0.0625f;
    float found;
    if (__all_sync(~0u, tame)) {
        // What all chances come to is exact: of the ratio, which is rounded, no more than its spread is left.
        double share = ((double)higher + lower) / (1.0 + ratio);
        #pragma unroll
        for (int k = 1; k < STEPS; k *= 2) share *= share;
        const double scale = 1.0 / ((double)FIRST * SECOND);
        found = (float)(root<true>({ratio, 1.0f, true}, now, then, each, value) * (share * scale));
    } else {
        found = root<false>({higher, lower, false}, now, then, each, value);
    }
    if (wanted < options) call[option] = found;
}
