#include <cuda_fp16.h>

// Half in memory, float in registers.
__device__ __forceinline__ float square(half h)
{
    float f = __half2float(h);
    return f * f;
}

__global__ void norm3(const __half *x, __half *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float norm = sqrtf(square(x[3 * i]) + square(x[3 * i + 1]) + square(x[3 * i + 2]));
        out[i] = __float2half(norm);
    }
}
