#include <cuda_bf16.h>

#pragma optiml launch scaled_relu grid(cdiv(pairs, 128)) block(128)
__global__ void scaled_relu(const float2 *x, float2 *out, float scale, int pairs)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    __nv_bfloat162 v = __float22bfloat162_rn(x[i]);
    v = __hmul2(v, __float2bfloat162_rn(scale));
    v = __hmax2(v, __float2bfloat162_rn(0.0f));
    out[i] = __bfloat1622float2(v);
}
