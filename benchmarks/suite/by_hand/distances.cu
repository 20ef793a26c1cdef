// By the squares of both points and their product, an fma for each element. Where little is left of
// the difference, or it is no number, it is computed again as it is written.
#pragma optiml launch distances grid(cdiv(m, 128), cdiv(n, 128)) block(256)
constexpr int SIDE = 128, DEEP = 16, THREADS = 256, PITCH = SIDE + 4;

// Rows of 64 floats and more, laid down by columns: tile[k][row]. From the ninth k on rows are
// exchanged in eights, so that the lanes that write one row in four pieces meet in no bank.
struct Tiles {
    float a[2][DEEP][PITCH], b[2][DEEP][PITCH];
};

__device__ __forceinline__ float4 piece(const float* at, int k, int depth, bool whole) {
    float4 found = {};
    if (whole) return k < depth ? *reinterpret_cast<const float4*>(at + k) : found;
    if (k < depth) found.x = at[k];
    if (k + 1 < depth) found.y = at[k + 1];
    if (k + 2 < depth) found.z = at[k + 2];
    if (k + 3 < depth) found.w = at[k + 3];
    return found;
}

__device__ __forceinline__ void lay(float (*tile)[PITCH], const float4& found, int row, int k) {
    row ^= k / 8 * 8;
    tile[k][row] = found.x;
    tile[k + 1][row] = found.y;
    tile[k + 2][row] = found.z;
    tile[k + 3][row] = found.w;
}

__device__ __forceinline__ float fast_sqrt(float x) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

__global__ void __launch_bounds__(THREADS, 2) distances(const float* p, const float* q, float* out,
                                                        int n, int m, int d) {
    __shared__ __align__(16) Tiles tiles;
    __shared__ __align__(16) float squares[2][SIDE];
    const int top = blockIdx.y * SIDE, left = blockIdx.x * SIDE;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const bool whole = d % 4 == 0 && (size_t)p % 16 == 0 && (size_t)q % 16 == 0;

    float4 p_next[2], q_next[2];
    const int piece_row = thread / 4, piece_k = thread % 4 * 4;
    // Rows beyond the last one repeat it: nobody writes what comes of them.
    int p_at[2], q_at[2];
    #pragma unroll
    for (int turn = 0; turn < 2; turn++) {
        p_at[turn] = min(top + piece_row + turn * (THREADS / 4), n - 1) * d;
        q_at[turn] = min(left + piece_row + turn * (THREADS / 4), m - 1) * d;
    }
    const auto fetch = [&](int from) {
        #pragma unroll
        for (int turn = 0; turn < 2; turn++) {
            p_next[turn] = piece(p + p_at[turn], from + piece_k, d, whole);
            q_next[turn] = piece(q + q_at[turn], from + piece_k, d, whole);
        }
    };
    const auto put = [&](int half) {
        #pragma unroll
        for (int turn = 0; turn < 2; turn++) {
            const int row = piece_row + turn * (THREADS / 4);
            lay(tiles.a[half], p_next[turn], row, piece_k);
            lay(tiles.b[half], q_next[turn], row, piece_k);
        }
    };
    fetch(0);
    put(0);
    __syncthreads();

    const int own_row = warp / 2 * 32 + (lane / 16 * 2 + lane % 2) * 4;
    const int own_col = warp % 2 * 64 + lane / 2 % 8 * 4;
    float sum[8][8] = {}, square = 0.0f;
    for (int from = 0, half = 0; from < d; from += DEEP, half ^= 1) {
        if (from + DEEP < d) fetch(from + DEEP);
        const float (*own)[PITCH] = thread < SIDE ? tiles.a[half] : tiles.b[half];
        #pragma unroll
        for (int k = 0; k < DEEP; k++) {
            const float value = own[k][thread % SIDE ^ k / 8 * 8];
            square += value * value;
        }
        #pragma unroll
        for (int k = 0; k < DEEP; k++) {
            __align__(16) float a[8], b[8];
            const float* a_at = &tiles.a[half][k][own_row ^ k / 8 * 8];
            const float* b_at = &tiles.b[half][k][own_col ^ k / 8 * 8];
            *reinterpret_cast<float4*>(a) = *reinterpret_cast<const float4*>(a_at);
            *reinterpret_cast<float4*>(a + 4) = *reinterpret_cast<const float4*>(a_at + 16);
            *reinterpret_cast<float4*>(b) = *reinterpret_cast<const float4*>(b_at);
            *reinterpret_cast<float4*>(b + 4) = *reinterpret_cast<const float4*>(b_at + 32);
            #pragma unroll
            for (int i = 0; i < 8; i++) {
                #pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += a[i] * b[j];
            }
        }
        if (from + DEEP < d) put(half ^ 1);
        __syncthreads();
    }
    squares[thread / SIDE][thread % SIDE] = square;
    __syncthreads();

    const bool fours = m % 4 == 0 && (size_t)out % 16 == 0;
    unsigned long long near = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        const int own = own_row + i / 4 * 16 + i % 4, row = top + own;
        if (row >= n) continue;
        const float p_square = squares[0][own];
        #pragma unroll
        for (int run = 0; run < 2; run++) {
            const int column = left + own_col + run * 32;
            float value[4];
            #pragma unroll
            for (int j = 0; j < 4; j++) {
                const float both = p_square + squares[1][own_col + run * 32 + j];
                const float apart = both - 2.0f * sum[i][run * 4 + j];
                if (!(apart > 0.0625f * both)) near |= 1ull << (i * 8 + run * 4 + j);
                value[j] = fast_sqrt(apart);
            }
            float* at = out + (size_t)row * m + column;
            if (fours) {
                if (column < m) __stcs(reinterpret_cast<float4*>(at), make_float4(value[0], value[1], value[2], value[3]));
            } else {
                #pragma unroll
                for (int j = 0; j < 4; j++) if (column + j < m) at[j] = value[j];
            }
        }
    }
    for (; near; near &= near - 1) {
        const int bit = __ffsll(near) - 1, i = bit / 8, j = bit % 8;
        const int row = top + own_row + i / 4 * 16 + i % 4, column = left + own_col + j / 4 * 32 + j % 4;
        if (column >= m) continue;
        float apart = 0.0f;
        for (int k = 0; k < d; k++) {
            const float off = p[(size_t)row * d + k] - q[(size_t)column * d + k];
            apart += off * off;
        }
        out[(size_t)row * m + column] = sqrtf(apart);
    }
}
