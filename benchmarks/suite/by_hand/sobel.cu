// Bytes widened to 16 bits are halves as they are: whole numbers below 2048 in units of the least
// denormal, which half arithmetic adds exactly. A word's even and odd pixels make a pair each.
#pragma optiml launch sobel_wide grid(cdiv(width, 512), cdiv(height, 32)) block(32, 4) if (width % 16 == 0)
#pragma optiml launch sobel grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16) else
#include <cuda_fp16.h>
constexpr int ROWS = 8;

__device__ __forceinline__ __half2 halves(unsigned bits) { return *reinterpret_cast<__half2*>(&bits); }
__device__ __forceinline__ unsigned bits(__half2 pair) { return *reinterpret_cast<unsigned*>(&pair); }

// Of one row: right less left, and left, twice the middle and right together.
struct Row {
    __half2 across[8], along[8];
};

__device__ __forceinline__ Row row_of(const uint4& words, unsigned side, int lane, bool ends) {
    Row row;
    const unsigned word[4] = {words.x, words.y, words.z, words.w};
    unsigned even[4], odd[4];
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        even[k] = word[k] & 0x00ff00ffu;
        odd[k] = __byte_perm(word[k], 0, 0x4341);
    }
    unsigned before = __shfl_up_sync(~0u, odd[3], 1), after = __shfl_down_sync(~0u, even[0], 1);
    if (lane == 0) before = side << 16;
    if (lane == 31) after = side;
    if (ends) after = words.w >> 24;
    const __half2 two = __float2half2_rn(2.0f);
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        const __half2 here[2] = {halves(even[k]), halves(odd[k])};
        const __half2 left = halves(__byte_perm(k ? odd[k ? k - 1 : 0] : before, odd[k], 0x5432));
        const __half2 right = halves(__byte_perm(even[k], k < 3 ? even[k < 3 ? k + 1 : 0] : after, 0x5432));
        row.across[2 * k] = __hsub2(here[1], left);
        row.along[2 * k] = __hfma2(here[0], two, __hadd2(left, here[1]));
        row.across[2 * k + 1] = __hsub2(right, here[0]);
        row.along[2 * k + 1] = __hfma2(here[1], two, __hadd2(here[0], right));
    }
    return row;
}

__device__ __forceinline__ unsigned edge(const Row& above, const Row& here, const Row& below, int k) {
    const __half2 two = __float2half2_rn(2.0f), most = halves(0x00ff00ffu);
    const __half2 horizontal = __hadd2(__hfma2(here.across[k], two, above.across[k]), below.across[k]);
    const __half2 vertical = __hsub2(above.along[k], below.along[k]);
    return bits(__hmin2(__hadd2(__habs2(horizontal), __habs2(vertical)), most));
}

__global__ void __launch_bounds__(128) sobel_wide(const unsigned char* image, unsigned char* out,
                                                  int width, int height) {
    const int lane = threadIdx.x, wanted = (blockIdx.x * 32 + lane) * 16;
    const int x = min(wanted, width - 16), y = (blockIdx.y * 4 + threadIdx.y) * ROWS;
    if (y >= height) return;
    const int beside = lane == 0 ? max(x - 1, 0) : min(x + 16, width - 1);
    // Lanes beyond the width repeat its last pixels, so they are nobody's neighbours.
    const bool outer = lane == 0 || lane == 31, ends = x + 16 == width;

    uint4 words[ROWS + 2];
    unsigned side[ROWS + 2];
    #pragma unroll
    for (int r = 0; r < ROWS + 2; r++) {
        const unsigned char* line = image + (size_t)min(max(y + r - 1, 0), height - 1) * width;
        words[r] = *reinterpret_cast<const uint4*>(line + x);
        side[r] = outer ? line[beside] : 0;
    }
    Row above = row_of(words[0], side[0], lane, ends);
    Row here = row_of(words[1], side[1], lane, ends);
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const Row below = row_of(words[r + 2], side[r + 2], lane, ends);
        unsigned made[4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            made[k] = __byte_perm(edge(above, here, below, 2 * k), edge(above, here, below, 2 * k + 1), 0x6240);
        }
        if (y + r < height && wanted < width) {
            __stcs(reinterpret_cast<uint4*>(out + (size_t)(y + r) * width + x),
                   make_uint4(made[0], made[1], made[2], made[3]));
        }
        above = here;
        here = below;
    }
}

__global__ void sobel(const unsigned char* image, unsigned char* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int left = x > 0 ? x - 1 : 0;
    int right = x < width - 1 ? x + 1 : width - 1;
    int above = y > 0 ? y - 1 : 0;
    int below = y < height - 1 ? y + 1 : height - 1;
    int a = image[above * width + left], b = image[above * width + x];
    int c = image[above * width + right], d = image[y * width + left];
    int f = image[y * width + right], g = image[below * width + left];
    int h = image[below * width + x], i = image[below * width + right];
    int horizontal = c + 2 * f + i - a - 2 * d - g;
    int vertical = a + 2 * b + c - g - 2 * h - i;
    int sum = abs(horizontal) + abs(vertical);
    out[y * width + x] = sum > 255 ? 255 : sum;
}
