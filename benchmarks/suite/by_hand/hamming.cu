// Values of four bits are four planes of bits, made once: 32 attributes of a pair are then four
// instructions that ask whether any plane differs, and a count of bits. Each pair once, in tiles of 32
// on and below the diagonal: 528 of them at 1024 rows, four for each of 132 multiprocessors. Tiles
// with a row of other values are compared as they are written.
#pragma optiml scratch planes i4[1024 * cdiv(attributes, 256) * cdiv(rows, 32)]
#pragma optiml scratch others i4[rows]
#pragma optiml launch pack grid(rows) block(128) args(data, planes, others, rows, attributes)
#pragma optiml launch hamming grid(cdiv(rows, 32) * (cdiv(rows, 32) + 1) / 2) block(128)
#include <cuda_pipeline.h>
constexpr int SIDE = 32, WARPS = 4, DEEP = 4;

// planes[row / 32][word][row % 32][plane]: a warp makes eight words of a row at once, each of every
// fourth attribute of 128, since in which order attributes are does not matter. A lane has the four
// planes of eight attributes, and after their 32 by 32 bits are transposed one plane of a word.
__global__ void __launch_bounds__(128) pack(const int* data, int* planes, int* others, int rows, int attributes) {
    const int row = blockIdx.x, lane = threadIdx.x % 32, words = (attributes + 255) / 256 * 8;
    const int* own = data + (size_t)row * attributes;
    const bool whole = attributes % 4 == 0 && (size_t)data % 16 == 0;
    int* to = planes + ((size_t)(row / SIDE) * words * SIDE + row % SIDE) * 4 + lane % 4;
    unsigned all = 0;
    #pragma unroll 4
    for (int first = 0; first < words; first += WARPS * 8) {
        const int word = first + threadIdx.x / 32 * 8;
        unsigned bits = 0;
        #pragma unroll
        for (int half = 0; half < 2; half++) {
            const int at = (word + half * 4) * 32 + lane * 4;
            int4 four = {};
            if (whole) {
                if (at < attributes) four = *reinterpret_cast<const int4*>(own + at);
            } else {
                if (at < attributes) four.x = own[at];
                if (at + 1 < attributes) four.y = own[at + 1];
                if (at + 2 < attributes) four.z = own[at + 2];
                if (at + 3 < attributes) four.w = own[at + 3];
            }
            all |= four.x | four.y | four.z | four.w;
            bits += (((unsigned)four.w * 16 + four.z) * 16 + four.y) * 16 + four.x << 16 * half;
        }
        #pragma unroll
        for (int by = 16; by > 0; by /= 2) {
            const unsigned lower = ~0u / ((1u << by) + 1), kept = lane & by ? ~lower : lower;
            const unsigned theirs = __shfl_xor_sync(~0u, bits, by);
            bits = bits & kept | __funnelshift_l(theirs, theirs, lane & by ? 32 - by : by) & ~kept;
        }
        if (word < words) to[(word + lane / 4) * SIDE * 4] = bits;
    }
    const int other = __syncthreads_or(all > 15);
    if (threadIdx.x == 0) others[row] = other;
}

__device__ __forceinline__ int differing(const uint4& a, const uint4& b) {
    return __popc((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w));
}

__device__ __noinline__ void compared(const int* data, int* distance, int rows, int attributes, int top, int left) {
    for (int at = threadIdx.x; at < SIDE * SIDE; at += WARPS * 32) {
        const int i = top + at / SIDE, j = left + at % SIDE;
        if (i >= rows || j >= rows) continue;
        int count = 0;
        for (int k = 0; k < attributes; k++) count += data[(size_t)i * attributes + k] != data[(size_t)j * attributes + k];
        distance[(size_t)i * rows + j] = distance[(size_t)j * rows + i] = count;
    }
}

__global__ void __launch_bounds__(128, 4) hamming(const int* data, int* distance, int rows, int attributes,
                                                  const int* planes, const int* others) {
    __shared__ __align__(16) uint4 staged[WARPS][2][DEEP][2 * SIDE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = blockIdx.x;
    int down = (int)((sqrtf(8.0f * tile + 1.0f) - 1.0f) * 0.5f);
    while (down * (down + 1) / 2 > tile) down--;
    while ((down + 1) * (down + 2) / 2 <= tile) down++;
    const int across = tile - down * (down + 1) / 2, top = down * SIDE, left = across * SIDE;
    if (__any_sync(~0u, others[min(top + lane, rows - 1)] | others[min(left + lane, rows - 1)])) {
        compared(data, distance, rows, attributes, top, left);
        return;
    }

    // Each warp has all of the tile and every fourth piece of the words, which nobody else asks for.
    const int words = (attributes + 255) / 256 * 8;
    const uint4* table = reinterpret_cast<const uint4*>(planes);
    const uint4* a_from = table + (size_t)down * words * SIDE + min(lane, rows - 1 - top);
    const uint4* b_from = table + (size_t)across * words * SIDE + min(lane, rows - 1 - left);
    const auto fetch = [&](int word, int half) {
        #pragma unroll
        for (int k = 0; k < DEEP && word < words; k++) {
            __pipeline_memcpy_async(&staged[warp][half][k][lane], a_from + (word + k) * SIDE, 16);
            __pipeline_memcpy_async(&staged[warp][half][k][SIDE + lane], b_from + (word + k) * SIDE, 16);
        }
        __pipeline_commit();
    };
    const int own_row = lane / 16 * 2 + lane % 2, own_col = lane / 2 % 8;
    int count[8][4] = {};
    fetch(warp * DEEP, 0);
    for (int word = warp * DEEP, half = 0; word < words; word += WARPS * DEEP, half ^= 1) {
        fetch(word + WARPS * DEEP, half ^ 1);
        __pipeline_wait_prior(1);
        __syncwarp();
        #pragma unroll
        for (int k = 0; k < DEEP; k++) {
            const uint4* at = staged[warp][half][k];
            uint4 b[4];
            #pragma unroll
            for (int j = 0; j < 4; j++) b[j] = at[SIDE + own_col + j * 8];
            #pragma unroll
            for (int i = 0; i < 8; i++) {
                const uint4 a = at[own_row + i * 4];
                #pragma unroll
                for (int j = 0; j < 4; j++) count[i][j] += differing(a, b[j]);
            }
        }
        __syncwarp();
    }
    __pipeline_wait_prior(0);
    __syncthreads();

    auto parts = reinterpret_cast<int (*)[SIDE][SIDE + 1]>(staged);
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        #pragma unroll
        for (int j = 0; j < 4; j++) parts[warp][own_row + i * 4][own_col + j * 8] = count[i][j];
    }
    __syncthreads();
    for (int y = warp; y < SIDE; y += WARPS) {
        int here = 0, mirrored = 0;
        #pragma unroll
        for (int part = 0; part < WARPS; part++) {
            here += parts[part][y][lane];
            mirrored += parts[part][lane][y];
        }
        if (top + y < rows && left + lane < rows) distance[(size_t)(top + y) * rows + left + lane] = here;
        if (left + y < rows && top + lane < rows) distance[(size_t)(left + y) * rows + top + lane] = mirrored;
    }
}
