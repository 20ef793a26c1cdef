// data is [n, m]
// Means and centring at once, a block for a strip of eight columns, whose second reading is from the
// L1. Then tiles of 96 on and below the diagonal: 66 of them at m = 1024, in 4 parts of n twice for
// each of 132 multiprocessors. The last kernel adds the parts and writes both triangles.
#pragma optiml tune SIDE in {96} = 96
#pragma optiml tune DEEP in {16} = 16
#pragma optiml tune PARTS in {2, 4, 6, 8} = 4
#pragma optiml tune THREADS in {192} = 192
#pragma optiml scratch parts f4[PARTS * SIDE * SIDE * (cdiv(m, SIDE) * (cdiv(m, SIDE) + 1) / 2)]
#pragma optiml launch centre grid(cdiv(m, 8)) block(1024)
#pragma optiml launch multiply grid(PARTS * (cdiv(m, SIDE) * (cdiv(m, SIDE) + 1) / 2)) block(THREADS)
#pragma optiml launch gather grid(9 * (cdiv(m, SIDE) * (cdiv(m, SIDE) + 1) / 2)) block(32, 8)

__global__ void __launch_bounds__(1024) centre(float* data, int m, int n) {
    __shared__ float sums[32][8], means[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.x * 8 + lane % 8;
    const int first = threadIdx.x / 8;
    float sum = 0.0f;
    if (column < m) {
        #pragma unroll 8
        for (int i = first; i < n; i += 128) sum += data[i * m + column];
    }
    sum += __shfl_xor_sync(~0u, sum, 8);
    sum += __shfl_xor_sync(~0u, sum, 16);
    if (lane < 8) sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = 0.0f;
        for (int i = lane / 8; i < 32; i += 4) sum += sums[i][lane % 8];
        sum += __shfl_xor_sync(~0u, sum, 8);
        sum += __shfl_xor_sync(~0u, sum, 16);
        if (lane < 8) means[lane] = sum / n;
    }
    __syncthreads();
    if (column < m) {
        const float mean = means[lane % 8];
        #pragma unroll 8
        for (int i = first; i < n; i += 128) data[i * m + column] -= mean;
    }
}

struct Place {
    int down, across;
};

__device__ __forceinline__ Place place(int tile) {
    int down = (int)((sqrtf(8.0f * tile + 1.0f) - 1.0f) * 0.5f);
    while (down * (down + 1) / 2 > tile) down--;
    while ((down + 1) * (down + 2) / 2 <= tile) down++;
    return {down, tile - down * (down + 1) / 2};
}

__global__ void __launch_bounds__(THREADS, 2) multiply(const float* data, float* parts, int m, int n) {
    __shared__ __align__(16) float a_tile[2][DEEP][SIDE], b_tile[2][DEEP][SIDE];
    const int tile = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    const Place at = place(tile);
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int depth = ((n + DEEP - 1) / DEEP + PARTS - 1) / PARTS * DEEP;
    const int end = min(n, (part + 1) * depth);
    const bool whole = m % 4 == 0 && (size_t)data % 16 == 0;

    float4 a_next[2], b_next[2];
    const auto piece = [&](int k, int column) {
        float4 found = {};
        if (k >= end) return found;
        const float* from = data + (size_t)k * m;
        // Columns beyond the last ones repeat them: nobody reads what comes of them.
        if (whole) return *reinterpret_cast<const float4*>(from + min(column, m - 4));
        found.x = from[min(column, m - 1)];
        found.y = from[min(column + 1, m - 1)];
        found.z = from[min(column + 2, m - 1)];
        found.w = from[min(column + 3, m - 1)];
        return found;
    };
    const int piece_k = thread / (SIDE / 4), piece_column = thread % (SIDE / 4) * 4;
    const auto fetch = [&](int from) {
        #pragma unroll
        for (int turn = 0; turn < 2; turn++) {
            const int k = from + piece_k + turn * (DEEP / 2);
            a_next[turn] = piece(k, at.down * SIDE + piece_column);
            b_next[turn] = piece(k, at.across * SIDE + piece_column);
        }
    };
    const auto put = [&](int half) {
        #pragma unroll
        for (int turn = 0; turn < 2; turn++) {
            const int k = piece_k + turn * (DEEP / 2);
            *reinterpret_cast<float4*>(&a_tile[half][k][piece_column]) = a_next[turn];
            *reinterpret_cast<float4*>(&b_tile[half][k][piece_column]) = b_next[turn];
        }
    };
    fetch(part * depth);
    put(0);
    __syncthreads();

    // Six rows in pairs and eight columns in fours, of a warp's 48 by 32.
    const int own_row = warp / 3 * 48 + lane / 4 * 2, own_col = warp % 3 * 32 + lane % 4 * 4;
    float sum[6][8] = {};
    for (int from = part * depth, half = 0; from < end; from += DEEP, half ^= 1) {
        if (from + DEEP < end) fetch(from + DEEP);
        #pragma unroll
        for (int k = 0; k < DEEP; k++) {
            __align__(16) float a[6], b[8];
            #pragma unroll
            for (int i = 0; i < 6; i += 2) {
                *reinterpret_cast<float2*>(a + i) = *reinterpret_cast<const float2*>(&a_tile[half][k][own_row + i * 8]);
            }
            *reinterpret_cast<float4*>(b) = *reinterpret_cast<const float4*>(&b_tile[half][k][own_col]);
            *reinterpret_cast<float4*>(b + 4) = *reinterpret_cast<const float4*>(&b_tile[half][k][own_col + 16]);
            #pragma unroll
            for (int i = 0; i < 6; i++) {
                #pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += a[i] * b[j];
            }
        }
        if (from + DEEP < end) put(half ^ 1);
        __syncthreads();
    }
    float* mine = parts + (size_t)blockIdx.x * SIDE * SIDE;
    #pragma unroll
    for (int i = 0; i < 6; i++) {
        float* line = mine + (own_row + i / 2 * 16 + i % 2) * SIDE + own_col;
        *reinterpret_cast<float4*>(line) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        *reinterpret_cast<float4*>(line + 16) = make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]);
    }
}

__global__ void gather(float* symmat, const float* parts, int m) {
    __shared__ float block[32][33];
    const int tile = blockIdx.x / 9, down = blockIdx.x % 9 / 3 * 32, across = blockIdx.x % 3 * 32;
    const Place at = place(tile);
    if (at.down == at.across && down < across) return;
    const int top = at.down * SIDE + down, left = at.across * SIDE + across, x = threadIdx.x;
    const float* from = parts + (size_t)tile * PARTS * SIDE * SIDE + down * SIDE + across + x;
    #pragma unroll
    for (int y = threadIdx.y; y < 32; y += 8) {
        float sum = 0.0f;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) sum += from[(part * SIDE + y) * SIDE];
        block[y][x] = sum;
        if (top + y < m && left + x < m) symmat[(size_t)(top + y) * m + left + x] = sum;
    }
    if (top == left) return;
    __syncthreads();
    #pragma unroll
    for (int y = threadIdx.y; y < 32; y += 8) {
        if (left + y < m && top + x < m) symmat[(size_t)(left + y) * m + top + x] = block[x][y];
    }
}
