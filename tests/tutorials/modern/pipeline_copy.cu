#include <cuda_pipeline.h>

// Tiles of the next step are copied while this one is summed.
#pragma optiml launch pipelined_sum grid(blocks) block(128)
__global__ void pipelined_sum(const float4 *in, float4 *out, int tiles, int blocks)
{
    __shared__ float4 stage[2][128];
    const int t = threadIdx.x;
    const float4 *mine = in + blockIdx.x * tiles * 128;
    __pipeline_memcpy_async(&stage[0][t], &mine[t], sizeof(float4));
    __pipeline_commit();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < tiles; ++k) {
        if (k + 1 < tiles)
            __pipeline_memcpy_async(&stage[(k + 1) & 1][t], &mine[(k + 1) * 128 + t], sizeof(float4));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = stage[k & 1][127 - t];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = sum;
}
