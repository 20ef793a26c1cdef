#include <cuda_fp16.h>

template <int THREADS>
__device__ float block_sum(float v)
{
    __shared__ float s[THREADS / 32];
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
    __syncthreads();
    float total = 0;
    for (int w = 0; w < THREADS / 32; ++w) total += s[w];
    return total;
}

#pragma optiml launch rmsnorm<128> grid(tokens) block(128)
template <int THREADS>
__global__ void rmsnorm(const half *x, const half *gain, half *out, float eps, int tokens, int dim)
{
    const half2 *row = reinterpret_cast<const half2 *>(x + blockIdx.x * dim);
    const half2 *g = reinterpret_cast<const half2 *>(gain);
    half2 *o = reinterpret_cast<half2 *>(out + blockIdx.x * dim);
    float squares = 0.f;
    for (int i = threadIdx.x; i < dim / 2; i += THREADS) {
        float2 v = __half22float2(row[i]);
        squares += v.x * v.x + v.y * v.y;
    }
    float scale = rsqrtf(block_sum<THREADS>(squares) / dim + eps);
    for (int i = threadIdx.x; i < dim / 2; i += THREADS) {
        float2 v = __half22float2(row[i]), w = __half22float2(g[i]);
        o[i] = __floats2half2_rn(v.x * scale * w.x, v.y * scale * w.y);
    }
}
