// Two pixels weigh each other alike: each pair's exponential is computed once and counts for both of them. A warp
// goes down 128 columns, sums of rows below under way in registers; lanes send their neighbours what is theirs.
#pragma optiml launch bilateral_pairs grid(cdiv(width, 120), cdiv(height, 92)) block(32) if (width % 4 == 0 && radius >= 3 && radius <= 4)
#pragma optiml launch bilateral grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16) else
constexpr int ROWS = 92;  // 4096 x 4096 pixels are then 1575 warps, and 1584 run at a time

__device__ __forceinline__ float fast_exp2(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// A lane's four columns, and four more on each side, where the image is thought to go on as it ends.
struct Row {
    float of[12];
};

struct Sums {
    float values[4], weights[4];
};

template <int RADIUS>
__device__ __forceinline__ void strip(const float* __restrict__ image, float* __restrict__ out, int width, int height,
                                      float spatial, float tonal) {
    const int lane = threadIdx.x, x = (blockIdx.x * 30 + lane - 1) * 4, top = blockIdx.y * ROWS;
    const bool kept = lane > 0 && lane < 31 && x < width;
    // In units of which the square is what goes into the power of two.
    const float unit = sqrtf(0.5f * 1.44269504f) / tonal, back = tonal / sqrtf(0.5f * 1.44269504f);
    const float far = -1.44269504f / (2.0f * spatial * spatial);
    const auto row_of = [&](int y) {
        const float* line = image + (size_t)min(max(y, 0), height - 1) * width;
        Row row;
        #pragma unroll
        for (int k = 0; k < 3; k++) {
            const int at = x + 4 * k - 4;
            const float4 four = *reinterpret_cast<const float4*>(line + min(max(at, 0), width - 4));
            row.of[4 * k] = (at < width ? four.x : four.w) * unit;
            row.of[4 * k + 1] = (at < 0 ? four.x : at < width ? four.y : four.w) * unit;
            row.of[4 * k + 2] = (at < 0 ? four.x : at < width ? four.z : four.w) * unit;
            row.of[4 * k + 3] = (at < 0 ? four.x : four.w) * unit;
        }
        return row;
    };
    Row rows[RADIUS + 1];
    Sums sums[RADIUS + 1] = {};
    #pragma unroll
    for (int k = 0; k <= RADIUS; k++) rows[k] = row_of(top - RADIUS + k);
    const int end = min(top + ROWS, height);
    #pragma unroll 1
    for (int y = top - RADIUS; y < end; y++) {
        const Row next = row_of(y + RADIUS + 1);
        #pragma unroll
        for (int down = 0; down <= RADIUS; down++) {
            #pragma unroll
            for (int across = -RADIUS; across <= RADIUS; across++) {
                if (down == 0 && across <= 0) continue;
                const float near = far * (down * down + across * across);
                #pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int to = i + across;
                    const float other = rows[down].of[4 + to], apart = other - rows[0].of[4 + i];
                    const float weight = fast_exp2(fmaf(-apart, apart, near));
                    sums[0].values[i] += weight * other;
                    sums[0].weights[i] += weight;
                    // Where the other pixel is a neighbour's, the other neighbour has such a pair for this lane.
                    const float theirs = to < 0 ? __shfl_down_sync(~0u, weight, 1)
                                                : to > 3 ? __shfl_up_sync(~0u, weight, 1) : weight;
                    const int own = (to + 4) % 4;
                    sums[down].values[own] += theirs * rows[0].of[4 + own - across];
                    sums[down].weights[own] += theirs;
                }
            }
        }
        if (y >= top && kept) {
            float found[4];
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                // A pixel is like itself.
                found[i] = __fdividef(sums[0].values[i] + rows[0].of[4 + i], sums[0].weights[i] + 1.0f) * back;
            }
            __stcs(reinterpret_cast<float4*>(out + (size_t)y * width + x),
                   make_float4(found[0], found[1], found[2], found[3]));
        }
        #pragma unroll
        for (int k = 0; k < RADIUS; k++) rows[k] = rows[k + 1], sums[k] = sums[k + 1];
        rows[RADIUS] = next;
        sums[RADIUS] = {};
    }
}

__global__ void __launch_bounds__(32, 12) bilateral_pairs(const float* __restrict__ image, float* __restrict__ out,
                                                          int width, int height, int radius, float spatial,
                                                          float tonal) {
    if (radius == 4) strip<4>(image, out, width, height, spatial, tonal);
    else strip<3>(image, out, width, height, spatial, tonal);
}

__global__ void bilateral(const float* image, float* out, int width, int height, int radius,
                          float spatial, float tonal) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float centre = image[(size_t)y * width + x], sum = 0.0f, weights = 0.0f;
    for (int i = -radius; i <= radius; i++) {
        for (int j = -radius; j <= radius; j++) {
            int px = min(max(x + j, 0), width - 1), py = min(max(y + i, 0), height - 1);
            float value = image[(size_t)py * width + px];
            float near = -(i * i + j * j) / (2 * spatial * spatial);
            float weight = expf(near - (value - centre) * (value - centre) / (2 * tonal * tonal));
            sum += weight * value;
            weights += weight;
        }
    }
    out[(size_t)y * width + x] = sum / weights;
}
