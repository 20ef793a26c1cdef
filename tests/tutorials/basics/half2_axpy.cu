#include <cuda_fp16.h>

#pragma optiml launch haxpy grid(cdiv(n / 2, 128)) block(128)
__global__ void haxpy(const half2 *x, half2 *y, float a, int n)
{
    half2 a2 = __float2half2_rn(a);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2)
        y[i] = __hfma2(a2, x[i], y[i]);
}
