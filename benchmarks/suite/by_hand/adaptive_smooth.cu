// A thread goes down four columns. Each row's sums over 3, 5 and 7 pixels are made once and added to
// the boxes that hold them; the few pixels that need a larger box are left for all threads at the end,
// each with its four and which of them.
#pragma optiml launch adaptive_smooth_strips grid(cdiv(width, 128), cdiv(height, 88)) block(32, 4) if (width % 4 == 0)
#pragma optiml launch adaptive_smooth grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16) else
constexpr int ROWS = 22;  // and 6 around them: a whole number of times the 7 boxes under way
constexpr int STRIPS = 4;
constexpr int AHEAD = 3;

__device__ __forceinline__ int within(int at, int q, int size) {
    return min(at + q, size - 1) - max(at - q, 0) + 1;
}

struct Line {
    float4 left, middle, right;
};

__device__ __forceinline__ Line line_of(const float* image, int x, int y, int width, int height) {
    Line line = {};
    if (y >= 0 && y < height && x < width) {
        const float4* at = reinterpret_cast<const float4*>(image + (size_t)y * width + x);
        line.middle = at[0];
        if (x > 0) line.left = at[-1];
        if (x + 4 < width) line.right = at[1];
    }
    return line;
}

__global__ void __launch_bounds__(32 * STRIPS, 4) adaptive_smooth_strips(
    const float* __restrict__ image, int* __restrict__ box, float* __restrict__ out, int width,
    int height, int largest, float enough) {
    __shared__ unsigned short left_over[32 * ROWS * STRIPS];
    __shared__ int left_overs;
    if (threadIdx.x + threadIdx.y == 0) left_overs = 0;
    __syncthreads();

    const int x = (blockIdx.x * 32 + threadIdx.x) * 4;
    const int top = blockIdx.y * (ROWS * STRIPS), y_first = top + threadIdx.y * ROWS;
    if (!(0.0f < enough) || largest < 1) {
        for (int y = y_first; x < width && y < min(y_first + ROWS, height); y++) {
            *reinterpret_cast<int4*>(box + (size_t)y * width + x) = make_int4(0, 0, 0, 0);
            *reinterpret_cast<float4*>(out + (size_t)y * width + x) = make_float4(NAN, NAN, NAN, NAN);
        }
        return;
    }
    // No sum is below where the box may not grow.
    const float enough1 = largest > 1 ? enough : -INFINITY, enough2 = largest > 2 ? enough : -INFINITY;
    const float enough3 = largest > 3 ? enough : -INFINITY;
    float sum1[7][4] = {}, sum2[7][4] = {}, sum3[7][4] = {};
    Line next = line_of(image, x, y_first - 3, width, height);
    #pragma unroll 1
    for (int turn = 0; turn < ROWS + 6; turn += 7) {
        #pragma unroll
        for (int k = 0; k < 7; k++) {
            const float a[12] = {next.left.x, next.left.y, next.left.z, next.left.w,
                                 next.middle.x, next.middle.y, next.middle.z, next.middle.w,
                                 next.right.x, next.right.y, next.right.z, next.right.w};
            const int y_next = y_first - 2 + turn + k;
            next = line_of(image, x, y_next, width, height);
            // A row of registers does not outlast the memory's latency; the L2's it does.
            if (x < width && y_next + AHEAD >= 0 && y_next + AHEAD < height) {
                asm volatile("prefetch.global.L2 [%0];" ::"l"(image + (size_t)(y_next + AHEAD) * width + x));
            }
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const float wide1 = a[i + 3] + a[i + 4] + a[i + 5];
                const float wide2 = wide1 + (a[i + 2] + a[i + 6]);
                const float wide3 = wide2 + (a[i + 1] + a[i + 7]);
                #pragma unroll
                for (int down = -3; down <= 3; down++) {
                    const int slot = (k + down + 7) % 7;
                    if (down >= -1 && down <= 1) sum1[slot][i] = down == 1 ? wide1 : sum1[slot][i] + wide1;
                    if (down >= -2 && down <= 2) sum2[slot][i] = down == 2 ? wide2 : sum2[slot][i] + wide2;
                    sum3[slot][i] = down == 3 ? wide3 : sum3[slot][i] + wide3;
                }
            }
            const int row = turn + k - 6, y = y_first + row, slot = (k + 4) % 7;
            if (row < 0 || y >= height || x >= width) continue;
            // At the border a box holds fewer pixels; its sum is divided at the end.
            const bool inner = x >= 3 && x + 7 <= width && y >= 3 && y + 4 <= height;
            int q[4];
            float mean[4];
            unsigned later = inner ? 0 : 15;
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                float sum = sum3[slot][i], part = 1.0f / 49.0f;
                q[i] = 3;
                if (sum < enough3) later |= 1u << i;
                if (!(sum2[slot][i] < enough2)) q[i] = 2, sum = sum2[slot][i], part = 1.0f / 25.0f;
                if (!(sum1[slot][i] < enough1)) q[i] = 1, sum = sum1[slot][i], part = 1.0f / 9.0f;
                mean[i] = sum * part;
            }
            const size_t at = (size_t)y * width + x;
            if (later) {
                #pragma unroll
                for (int i = 0; i < 4; i++) {
                    if (later >> i & 1) mean[i] = q[i] == 1 ? sum1[slot][i] : q[i] == 2 ? sum2[slot][i] : sum3[slot][i];
                }
                left_over[atomicAdd(&left_overs, 1)] = ((y - top) * 32 + threadIdx.x) << 4 | later;
            }
            *reinterpret_cast<int4*>(box + at) = make_int4(q[0], q[1], q[2], q[3]);
            *reinterpret_cast<float4*>(out + at) = make_float4(mean[0], mean[1], mean[2], mean[3]);
        }
    }
    __syncthreads();
    for (int entry = threadIdx.y * 32 + threadIdx.x; entry < left_overs; entry += 32 * STRIPS) {
        const int four = left_over[entry] >> 4, py = top + four / 32;
        for (unsigned later = left_over[entry] & 15; later; later &= later - 1) {
            const int px = (blockIdx.x * 32 + four % 32) * 4 + __ffs(later) - 1;
            const size_t pixel = (size_t)py * width + px;
            float sum = out[pixel];
            int q = box[pixel];
            while (sum < enough && q < largest) {
                q++;
                float ring = 0.0f;
                #pragma unroll 3
                for (int along = -q; along <= q; along++) {
                    if (px + along >= 0 && px + along < width) {
                        if (py >= q) ring += image[pixel - (size_t)q * width + along];
                        if (py + q < height) ring += image[pixel + (size_t)q * width + along];
                    }
                    if (abs(along) < q && py + along >= 0 && py + along < height) {
                        if (px >= q) ring += image[pixel + (long long)along * width - q];
                        if (px + q < width) ring += image[pixel + (long long)along * width + q];
                    }
                }
                sum += ring;
            }
            box[pixel] = q;
            out[pixel] = __fdividef(sum, (float)(within(px, q, width) * within(py, q, height)));
        }
    }
}

__global__ void adaptive_smooth(const float* image, int* box, float* out, int width, int height,
                                int largest, float enough) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    int count = 0, q = 0;
    while (sum < enough && q < largest) {
        q++;
        sum = 0.0f;
        count = within(x, q, width) * within(y, q, height);
        for (int i = max(y - q, 0); i <= min(y + q, height - 1); i++) {
            for (int j = max(x - q, 0); j <= min(x + q, width - 1); j++) sum += image[(size_t)i * width + j];
        }
    }
    box[y * width + x] = q;
    out[y * width + x] = __fdividef(sum, (float)count);
}
