// qkv is [B, T, 3 * NH * HS]; scores are [B, NH, T, T]
// Only tiles on and below the diagonal are computed; each writes the -inf of its mirror image first,
// so that these stores drain while it computes.
#pragma optiml launch causal_scores grid(B * NH * (cdiv(T, 128) * (cdiv(T, 128) + 1) / 2)) block(256)
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

__global__ void __launch_bounds__(THREADS, 2) causal_scores(float* scores, const float* qkv, int B,
                                                            int T, int NH, int HS) {
    __shared__ __align__(16) Tiles tiles;
    const int sides = (T + SIDE - 1) / SIDE, each = sides * (sides + 1) / 2;
    const int head = blockIdx.x / each, tile = blockIdx.x % each;
    int down = (int)((sqrtf(8.0f * tile + 1.0f) - 1.0f) * 0.5f);
    while (down * (down + 1) / 2 > tile) down--;
    while ((down + 1) * (down + 2) / 2 <= tile) down++;
    const int across = tile - down * (down + 1) / 2;
    const int top = down * SIDE, left = across * SIDE;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;

    const int stride = 3 * NH * HS;
    const float* query = qkv + (size_t)(head / NH) * T * stride + head % NH * HS;
    const float* key = query + NH * HS;
    const bool whole = HS % 4 == 0 && (size_t)qkv % 16 == 0;
    scores += (size_t)head * T * T;
    const bool fours = T % 4 == 0 && (size_t)scores % 16 == 0;

    float4 a_next[2], b_next[2];
    const int piece_row = thread / 4, piece_k = thread % 4 * 4;
    // Rows beyond the last one repeat it: nobody writes what comes of them.
    int a_at[2], b_at[2];
    #pragma unroll
    for (int turn = 0; turn < 2; turn++) {
        a_at[turn] = min(top + piece_row + turn * (THREADS / 4), T - 1) * stride;
        b_at[turn] = min(left + piece_row + turn * (THREADS / 4), T - 1) * stride;
    }
    const auto fetch = [&](int from) {
        #pragma unroll
        for (int turn = 0; turn < 2; turn++) {
            a_next[turn] = piece(query + a_at[turn], from + piece_k, HS, whole);
            b_next[turn] = piece(key + b_at[turn], from + piece_k, HS, whole);
        }
    };
    const auto put = [&](int half) {
        #pragma unroll
        for (int turn = 0; turn < 2; turn++) {
            const int row = piece_row + turn * (THREADS / 4);
            lay(tiles.a[half], a_next[turn], row, piece_k);
            lay(tiles.b[half], b_next[turn], row, piece_k);
        }
    };

    fetch(0);
    if (down != across) {
        const int column = top + lane * 4;
        for (int row = left + warp; row < min(left + SIDE, T); row += THREADS / 32) {
            float* at = scores + (size_t)row * T + column;
            if (fours) {
                if (column < T) __stcs(reinterpret_cast<float4*>(at), make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY));
            } else {
                for (int i = 0; i < 4; i++) if (column + i < T) at[i] = -INFINITY;
            }
        }
    }
    put(0);
    __syncthreads();

    const int own_row = warp / 2 * 32 + (lane / 16 * 2 + lane % 2) * 4;
    const int own_col = warp % 2 * 64 + lane / 2 % 8 * 4;
    const bool idle = down == across && warp % 2 * 64 > warp / 2 * 32 + 31;
    float sum[8][8] = {};
    for (int from = 0, half = 0; from < HS; from += DEEP, half ^= 1) {
        if (from + DEEP < HS) fetch(from + DEEP);
        if (!idle) {
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
        }
        if (from + DEEP < HS) put(half ^ 1);
        __syncthreads();
    }

    const float factor = 1.0f / sqrtf((float)HS);
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        const int row = top + own_row + i / 4 * 16 + i % 4;
        if (row >= T) continue;
        #pragma unroll
        for (int run = 0; run < 2; run++) {
            const int column = left + own_col + run * 32;
            float value[4];
            #pragma unroll
            for (int j = 0; j < 4; j++) value[j] = column + j > row ? -INFINITY : sum[i][run * 4 + j] * factor;
            float* at = scores + (size_t)row * T + column;
            if (fours) {
                if (column < T) __stcs(reinterpret_cast<float4*>(at), make_float4(value[0], value[1], value[2], value[3]));
            } else {
                #pragma unroll
                for (int j = 0; j < 4; j++) if (column + j < T) at[j] = value[j];
            }
        }
    }
}
