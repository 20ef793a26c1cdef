// One layer of a network in three kernels: y = layer_norm(gelu(a * b + bias)) * gain + shift,
// and energy, the logarithm of the sum of the exponentials of each row of y.
// a is m x k, b is k x n, everything row-major; m, n and k are multiples of the tiles.
#include <cuda_runtime.h>

#pragma optiml scratch hidden f4[m * n]
#pragma optiml launch linear_gelu grid(n / 64, m / 64) block(16, 16) args(a, b, bias, hidden, m, n, k)
#pragma optiml launch layer_norm grid(m) block(128) args(hidden, gain, shift, y, n, eps)
#pragma optiml launch log_sum_exp grid(m) block(32) args(y, energy, n)

constexpr int TILE_M = 64;
constexpr int TILE_N = 64;
constexpr int TILE_K = 16;
constexpr int PER_THREAD = 4;
constexpr int THREADS = 256;

// The tanh form of GELU (Hendrycks and Gimpel, 2016).
__device__ __forceinline__ float gelu(float x) {
    const float scale = 0.7978845608028654f;
    const float cubic = 0.044715f;
    float inner = scale * (x + cubic * x * x * x);
    return 0.5f * x * (1.0f + tanhf(inner));
}

__device__ __forceinline__ float4 load4(const float* p) {
    return *reinterpret_cast<const float4*>(p);
}

__device__ __forceinline__ void store4(float* p, float4 v) {
    *reinterpret_cast<float4*>(p) = v;
}

// Sum over the 32 lanes of a warp; every lane gets it.
__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    return value;
}

// Sum over a block of 128 threads.
__device__ float block_sum(float value, float* partial) {
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    value = warp_sum(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < blockDim.x / 32; ++i) {
        total += partial[i];
    }
    __syncthreads();
    return total;
}

// Each block computes a tile of 64 x 64, each thread 4 x 4 of it. Tiles of a and b are
// double-buffered in shared memory; a is transposed on its way there.
__global__ void __launch_bounds__(THREADS) linear_gelu(
    const float* __restrict__ a,
    const float* __restrict__ b,
    const float* __restrict__ bias,
    float* __restrict__ hidden,
    int m,
    int n,
    int k) {
    __shared__ __align__(16) float tile_a[2][TILE_K][TILE_M];
    __shared__ __align__(16) float tile_b[2][TILE_K][TILE_N];

    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    // Where this thread loads: four floats of a and four of b for each tile.
    const int a_row = thread / (TILE_K / 4);
    const int a_col = thread % (TILE_K / 4) * 4;
    const int b_row = thread / (TILE_N / 4);
    const int b_col = thread % (TILE_N / 4) * 4;
    const float* a_from = a + (row0 + a_row) * k + a_col;
    const float* b_from = b + b_row * n + col0 + b_col;

    float sum[PER_THREAD][PER_THREAD];
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
#pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
            sum[i][j] = 0.0f;
        }
    }

    // The first tile.
    float4 next_a = load4(a_from);
    float4 next_b = load4(b_from);
    tile_a[0][a_col + 0][a_row] = next_a.x;
    tile_a[0][a_col + 1][a_row] = next_a.y;
    tile_a[0][a_col + 2][a_row] = next_a.z;
    tile_a[0][a_col + 3][a_row] = next_a.w;
    store4(&tile_b[0][b_row][b_col], next_b);
    __syncthreads();

    int current = 0;
    for (int start = TILE_K; start <= k; start += TILE_K) {
        // The next tile is on its way while this one is used.
        bool more = start < k;
        if (more) {
            next_a = load4(a_from + start);
            next_b = load4(b_from + start * n);
        }
#pragma unroll
        for (int t = 0; t < TILE_K; ++t) {
            float4 left = load4(&tile_a[current][t][threadIdx.y * PER_THREAD]);
            float4 right = load4(&tile_b[current][t][threadIdx.x * PER_THREAD]);
            float left_of[PER_THREAD] = {left.x, left.y, left.z, left.w};
            float right_of[PER_THREAD] = {right.x, right.y, right.z, right.w};
#pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) {
#pragma unroll
                for (int j = 0; j < PER_THREAD; ++j) {
                    sum[i][j] += left_of[i] * right_of[j];
                }
            }
        }
        if (more) {
            int other = 1 - current;
            tile_a[other][a_col + 0][a_row] = next_a.x;
            tile_a[other][a_col + 1][a_row] = next_a.y;
            tile_a[other][a_col + 2][a_row] = next_a.z;
            tile_a[other][a_col + 3][a_row] = next_a.w;
            store4(&tile_b[other][b_row][b_col], next_b);
            current = other;
        }
        __syncthreads();
    }

    // Bias and activation on the way out.
    const int row = row0 + threadIdx.y * PER_THREAD;
    const int col = col0 + threadIdx.x * PER_THREAD;
    float4 add = load4(bias + col);
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        float4 value;
        value.x = gelu(sum[i][0] + add.x);
        value.y = gelu(sum[i][1] + add.y);
        value.z = gelu(sum[i][2] + add.z);
        value.w = gelu(sum[i][3] + add.w);
        store4(hidden + (row + i) * n + col, value);
    }
}

// One block for each row: mean and variance, then scale and shift.
__global__ void layer_norm(
    const float* __restrict__ hidden,
    const float* __restrict__ gain,
    const float* __restrict__ shift,
    float* __restrict__ y,
    int n,
    float eps) {
    __shared__ float partial[32];
    const float* from = hidden + blockIdx.x * n;
    float* to = y + blockIdx.x * n;

    float sum = 0.0f;
    for (int col = threadIdx.x; col < n; col += blockDim.x) {
        sum += from[col];
    }
    const float mean = block_sum(sum, partial) / n;

    float squares = 0.0f;
    for (int col = threadIdx.x; col < n; col += blockDim.x) {
        float off = from[col] - mean;
        squares += off * off;
    }
    const float variance = block_sum(squares, partial) / n;
    const float scale = rsqrtf(variance + eps);

    for (int col = threadIdx.x; col < n; col += blockDim.x) {
        to[col] = (from[col] - mean) * scale * gain[col] + shift[col];
    }
}

// One warp for each row: the greatest first, so that no exponential overflows.
__global__ void log_sum_exp(const float* __restrict__ y, float* __restrict__ energy, int n) {
    const float* from = y + blockIdx.x * n;
    const int lane = threadIdx.x;

    float greatest = -INFINITY;
    for (int col = lane; col < n; col += 32) {
        greatest = fmaxf(greatest, from[col]);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        greatest = fmaxf(greatest, __shfl_xor_sync(0xffffffffu, greatest, offset));
    }

    float sum = 0.0f;
    for (int col = lane; col < n; col += 32) {
        sum += expf(from[col] - greatest);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        energy[blockIdx.x] = greatest + logf(sum);
    }
}
