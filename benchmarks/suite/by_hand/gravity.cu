// Each pair once: a warp takes 256 bodies against 256, and both sides get their pull. The bodies of
// the one side stay with their lanes, those of the other go round the warp with what pulls them.
#pragma optiml zero(acceleration)
#pragma optiml launch gravity grid(cdiv(n, 256) * (cdiv(n, 256) + 1) / 2) block(32)
constexpr int ITEMS = 8, SIDE = 32 * ITEMS;

__device__ __forceinline__ float fast_rsqrt(float x) {
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

// A body that is not there weighs nothing.
__device__ __forceinline__ float4 body(const float* position, const float* mass, int at, int n) {
    const int known = min(at, n - 1);
    return make_float4(position[3 * known], position[3 * known + 1], position[3 * known + 2],
                       at < n ? mass[known] : 0.0f);
}

template <bool MUTUAL>
__device__ __forceinline__ void pull(const float4* bodies, const float4 (&own)[ITEMS],
                                     float (&ax)[ITEMS], float (&ay)[ITEMS], float (&az)[ITEMS],
                                     float* acceleration, int from, int n) {
    const int lane = threadIdx.x;
    #pragma unroll 1
    for (int part = 0; part < ITEMS; part++) {
        const float4* round = bodies + part * 64 + lane;
        float bx = 0.0f, by = 0.0f, bz = 0.0f;
        #pragma unroll 4
        for (int step = 0; step < 32; step++) {
            const float4 other = round[step];
            #pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                const float dx = other.x - own[i].x, dy = other.y - own[i].y, dz = other.z - own[i].z;
                const float inverse = fast_rsqrt(dx * dx + (dy * dy + (dz * dz + 0.01f)));
                const float cube = inverse * inverse * inverse;
                const float f = other.w * cube;
                ax[i] += f * dx;
                ay[i] += f * dy;
                az[i] += f * dz;
                if (MUTUAL) {
                    const float back = own[i].w * cube;
                    bx -= back * dx;
                    by -= back * dy;
                    bz -= back * dz;
                }
            }
            if (MUTUAL) {
                bx = __shfl_sync(~0u, bx, lane + 1);
                by = __shfl_sync(~0u, by, lane + 1);
                bz = __shfl_sync(~0u, bz, lane + 1);
            }
        }
        const int at = from + part * 32 + lane;
        if (MUTUAL && at < n) {
            atomicAdd(&acceleration[3 * at], bx);
            atomicAdd(&acceleration[3 * at + 1], by);
            atomicAdd(&acceleration[3 * at + 2], bz);
        }
    }
}

__global__ void __launch_bounds__(32, 16) gravity(const float* position, const float* mass,
                                                  float* acceleration, int n) {
    // Twice in a row, so that a lane's round needs no wrapping.
    __shared__ float4 bodies[2 * SIDE];
    const int lane = threadIdx.x, tile = blockIdx.x;
    int high = (int)((sqrtf(8.0f * tile + 1.0f) - 1.0f) * 0.5f);
    while (high * (high + 1) / 2 > tile) high--;
    while ((high + 1) * (high + 2) / 2 <= tile) high++;
    const int low = tile - high * (high + 1) / 2;

    float4 own[ITEMS];
    float ax[ITEMS] = {}, ay[ITEMS] = {}, az[ITEMS] = {};
    #pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        own[i] = body(position, mass, high * SIDE + i * 32 + lane, n);
        const float4 other = body(position, mass, low * SIDE + i * 32 + lane, n);
        bodies[i * 64 + lane] = other;
        bodies[i * 64 + 32 + lane] = other;
    }
    __syncwarp();
    if (high == low) pull<false>(bodies, own, ax, ay, az, acceleration, low * SIDE, n);
    else pull<true>(bodies, own, ax, ay, az, acceleration, low * SIDE, n);
    #pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = high * SIDE + i * 32 + lane;
        if (at < n) {
            atomicAdd(&acceleration[3 * at], ax[i]);
            atomicAdd(&acceleration[3 * at + 1], ay[i]);
            atomicAdd(&acceleration[3 * at + 2], az[i]);
        }
    }
}
