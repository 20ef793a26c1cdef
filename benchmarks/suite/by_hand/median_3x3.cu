// Two bytes at a time in halves of 16 bits. A byte that is the upper one of its half decides, whatever
// is below it: red and blue are a pixel shifted by a byte, and green needs no shift, so that the low
// halves of two pixels, ROWS apart, are one word. Columns of three are put in order once for the three
// pixels that they are beside, and of their middle two rows once for both rows of pixels.
#pragma optiml launch median_wide grid(cdiv(width, 128), cdiv(height, 64)) block(32, 4) if (width % 4 == 0)
#pragma optiml launch median_3x3 grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16) else
constexpr int ROWS = 8;

// Four pixels of a row and one on either side.
struct Row {
    unsigned pixel[6];
};

// As it was loaded: a lane at the end of its warp has the pixel beside as well.
struct Loaded {
    uint4 four;
    unsigned side;
};

__device__ __forceinline__ unsigned median(unsigned a, unsigned b, unsigned c) {
    return __vmaxu2(__vminu2(a, b), __vminu2(__vmaxu2(a, b), c));
}

// Medians of two rows of windows, of four rows of halves.
__device__ __forceinline__ void medians(const Row (&rows)[4], unsigned (&found)[2][4]) {
    unsigned lesser[6], greater[6];
    #pragma unroll
    for (int x = 0; x < 6; x++) {
        lesser[x] = __vminu2(rows[1].pixel[x], rows[2].pixel[x]);
        greater[x] = __vmaxu2(rows[1].pixel[x], rows[2].pixel[x]);
    }
    #pragma unroll
    for (int y = 0; y < 2; y++) {
        unsigned low[6], middle[6], high[6];
        #pragma unroll
        for (int x = 0; x < 6; x++) {
            const unsigned third = rows[y * 3].pixel[x];
            low[x] = __vminu2(lesser[x], third);
            middle[x] = __vmaxu2(lesser[x], __vminu2(greater[x], third));
            high[x] = __vmaxu2(greater[x], third);
        }
        #pragma unroll
        for (int x = 0; x < 4; x += 2) {
            const unsigned lows = __vmaxu2(low[x + 1], low[x + 2]), highs = __vminu2(high[x + 1], high[x + 2]);
            const unsigned under = __vminu2(middle[x + 1], middle[x + 2]);
            const unsigned over = __vmaxu2(middle[x + 1], middle[x + 2]);
            #pragma unroll
            for (int side = 0; side < 2; side++) {
                const int at = x + side * 3;
                found[y][x + side] = median(__vmaxu2(lows, low[at]), __vminu2(highs, high[at]),
                                            __vmaxu2(under, __vminu2(over, middle[at])));
            }
        }
    }
}

__global__ void __launch_bounds__(128, 4) median_wide(const uchar4* image, uchar4* out, int width, int height) {
    const int lane = threadIdx.x, x = (blockIdx.x * 32 + lane) * 4;
    const int top = (blockIdx.y * 4 + threadIdx.y) * 2 * ROWS;
    if (top >= height) return;
    const unsigned* pixels = reinterpret_cast<const unsigned*>(image);
    const int beside = lane == 0 ? x - 1 : x + 4;
    const bool here = x < width, outer = (lane == 0 || lane == 31) && beside >= 0 && beside < width;
    const auto load = [&](int y) {
        const int at = y * width;
        const bool inside = (unsigned)y < (unsigned)height;
        return Loaded{inside && here ? *reinterpret_cast<const uint4*>(&pixels[at + x]) : uint4{},
                      inside && outer ? pixels[at + beside] : 0};
    };
    const auto row_of = [&](const Loaded& found) {
        const unsigned before = __shfl_up_sync(~0u, found.four.w, 1), after = __shfl_down_sync(~0u, found.four.x, 1);
        return Row{{lane == 0 ? found.side : before, found.four.x, found.four.y, found.four.z, found.four.w,
                    lane == 31 ? found.side : after}};
    };

    Row rows[2][4];
    Loaded next[2][2];
    #pragma unroll
    for (int half = 0; half < 2; half++) {
        const int first = top + half * ROWS;
        rows[half][0] = row_of(load(first - 1));
        rows[half][1] = row_of(load(first));
        next[half][0] = load(first + 1);
        next[half][1] = load(first + 2);
    }
    #pragma unroll
    for (int y = 0; y < ROWS; y += 2) {
        #pragma unroll
        for (int half = 0; half < 2; half++) {
            #pragma unroll
            for (int k = 0; k < 2; k++) {
                rows[half][2 + k] = row_of(next[half][k]);
                if (y + 2 < ROWS) next[half][k] = load(top + half * ROWS + y + 3 + k);
            }
        }
        Row halves[4];
        unsigned green[2][4], others[2][4];
        #pragma unroll
        for (int r = 0; r < 4; r++) {
            #pragma unroll
            for (int k = 0; k < 6; k++) {
                halves[r].pixel[k] = __byte_perm(rows[0][r].pixel[k], rows[1][r].pixel[k], 0x5410);
            }
        }
        medians(halves, green);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
            #pragma unroll
            for (int r = 0; r < 4; r++) {
                #pragma unroll
                for (int k = 0; k < 6; k++) halves[r].pixel[k] = rows[half][r].pixel[k] << 8;
            }
            medians(halves, others);
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const int line = top + half * ROWS + y + r;
                unsigned made[4];
                #pragma unroll
                for (int k = 0; k < 4; k++) {
                    made[k] = __byte_perm(others[r][k], green[r][k], half == 0 ? 0x0351 : 0x0371);
                }
                if (here && line < height) {
                    __stcs(reinterpret_cast<uint4*>(&out[line * width + x]),
                           make_uint4(made[0], made[1], made[2], made[3]));
                }
                rows[half][r] = rows[half][2 + r];
            }
        }
    }
}

__device__ unsigned char median_of_nine(unsigned char* values) {
    for (int i = 0; i < 5; i++) {
        int least = i;
        for (int j = i + 1; j < 9; j++) {
            if (values[j] < values[least]) least = j;
        }
        unsigned char value = values[least];
        values[least] = values[i];
        values[i] = value;
    }
    return values[4];
}

__global__ void median_3x3(const uchar4* image, uchar4* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    unsigned char red[9], green[9], blue[9];
    int count = 0;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            int px = x + dx;
            int py = y + dy;
            uchar4 pixel = make_uchar4(0, 0, 0, 0);
            if (px >= 0 && px < width && py >= 0 && py < height) {
                pixel = image[py * width + px];
            }
            red[count] = pixel.x;
            green[count] = pixel.y;
            blue[count] = pixel.z;
            count++;
        }
    }
    out[y * width + x] =
        make_uchar4(median_of_nine(red), median_of_nine(green), median_of_nine(blue), 0);
}
