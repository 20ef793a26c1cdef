// A warp goes down 128 columns, of which both its ends are rim, in registers: a row is read, its first
// step made of three rows read, its second of three rows made. Nothing waits, and little is read twice.
#pragma optiml launch hotspot_twice grid(cdiv(cols, 120), cdiv(rows, 68)) block(32) if (cols % 4 == 0 && steps == 2)
#pragma optiml launch hotspot grid(cdiv(cols, 16 - 2 * steps), cdiv(rows, 16 - 2 * steps)) block(16, 16) else
#define TILE 16
constexpr int ROWS = 68;  // 8192 x 4096 cells are then 4209 warps, and 4224 run at a time

__device__ __forceinline__ float4 pick(bool first, const float4& a, const float4& b) {
    return make_float4(first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w);
}

// What a step takes of a cell, of those above and below, of those beside, and from outside.
struct Terms {
    float own, down, across, cap, outside;
};

__device__ __forceinline__ float4 stepped(const Terms& terms, const float4& above, const float4& here,
                                          const float4& below, const float4& heat, bool first, bool last) {
    const float before = __shfl_up_sync(~0u, here.w, 1), after = __shfl_down_sync(~0u, here.x, 1);
    // Beyond the edge of the chip a neighbour is the cell itself.
    const float west = first ? here.x : before, east = last ? here.w : after;
    const auto cell = [&](float north, float south, float left, float right, float own, float warm) {
        return fmaf(terms.across, left + right, fmaf(terms.down, north + south, fmaf(terms.own, own, warm)));
    };
    return make_float4(cell(above.x, below.x, west, here.y, here.x, heat.x),
                       cell(above.y, below.y, here.x, here.z, here.y, heat.y),
                       cell(above.z, below.z, here.y, here.w, here.z, heat.z),
                       cell(above.w, below.w, here.z, east, here.w, heat.w));
}

__global__ void __launch_bounds__(32, 32) hotspot_twice(
    const float* __restrict__ power, const float* __restrict__ temp, float* __restrict__ out, int cols, int rows,
    float cap, float rx, float ry, float rz, float ambient) {
    const int lane = threadIdx.x, x = (blockIdx.x * 30 + lane - 1) * 4, top = blockIdx.y * ROWS;
    const bool first = x == 0, last = x + 4 == cols, kept = lane > 0 && lane < 31 && x < cols;
    const Terms terms = {1.0f - cap * (2.0f * ry + 2.0f * rx + rz), cap * ry, cap * rx, cap, cap * rz * ambient};
    const float* temps = temp + min(max(x, 0), cols - 4);
    const float* powers = power + min(max(x, 0), cols - 4);
    const auto row_of = [&](const float* column, int y) {
        return *reinterpret_cast<const float4*>(column + (size_t)min(max(y, 0), rows - 1) * cols);
    };
    const auto warmth = [&](const float4& heat) {
        return make_float4(fmaf(terms.cap, heat.x, terms.outside), fmaf(terms.cap, heat.y, terms.outside),
                           fmaf(terms.cap, heat.z, terms.outside), fmaf(terms.cap, heat.w, terms.outside));
    };
    // Rows as they are: of y - 1, y and y + 1; after a step: of y - 2 and y - 1.
    float4 above = row_of(temps, top - 2), here = row_of(temps, top - 1), once_above = {}, once = {}, heat = {};
    float4 below = row_of(temps, top), next_heat = row_of(powers, top - 1);
    const int end = min(top + ROWS, rows);
    #pragma unroll 3
    for (int y = top - 1; y <= end; y++) {
        const float4 next = row_of(temps, y + 2), after = row_of(powers, y + 1);
        const float4 now = warmth(next_heat);
        const float4 made = stepped(terms, above, here, below, now, first, last);
        if (y > top) {
            const float4 found = stepped(terms, pick(y == 1, once, once_above), once, pick(y == rows, once, made),
                                         heat, first, last);
            if (kept) __stcs(reinterpret_cast<float4*>(out + (size_t)(y - 1) * cols + x), found);
        }
        above = here, here = below, below = next;
        once_above = once, once = made;
        heat = now, next_heat = after;
    }
}

__global__ void hotspot(const float* power, const float* temp, float* out, int cols, int rows,
                        int steps, float cap, float rx, float ry, float rz, float ambient) {
    __shared__ float now[TILE][TILE];
    __shared__ float heat[TILE][TILE];
    __shared__ float next[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int inner = TILE - 2 * steps;
    int x = inner * blockIdx.x + tx - steps;
    int y = inner * blockIdx.y + ty - steps;
    bool inside = x >= 0 && x < cols && y >= 0 && y < rows;
    if (inside) {
        now[ty][tx] = temp[y * cols + x];
        heat[ty][tx] = power[y * cols + x];
    }
    __syncthreads();
    int west = x > 0 ? tx - 1 : tx;
    int east = x < cols - 1 ? tx + 1 : tx;
    int north = y > 0 ? ty - 1 : ty;
    int south = y < rows - 1 ? ty + 1 : ty;
    for (int i = 1; i <= steps; i++) {
        bool computed = inside && tx >= i && tx < TILE - i && ty >= i && ty < TILE - i;
        if (computed) {
            next[ty][tx] = now[ty][tx] + cap * (heat[ty][tx] +
                           (now[south][tx] + now[north][tx] - 2.0f * now[ty][tx]) * ry +
                           (now[ty][east] + now[ty][west] - 2.0f * now[ty][tx]) * rx +
                           (ambient - now[ty][tx]) * rz);
        }
        __syncthreads();
        if (computed) now[ty][tx] = next[ty][tx];
        __syncthreads();
    }
    if (inside && tx >= steps && tx < TILE - steps && ty >= steps && ty < TILE - steps) {
        out[y * cols + x] = now[ty][tx];
    }
}
