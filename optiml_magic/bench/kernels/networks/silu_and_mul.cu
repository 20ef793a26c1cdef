#include <cuda_fp16.h>

// x is [tokens, 2 * width]: gates, then values
#pragma optiml launch silu_and_mul grid(cdiv(tokens * width, 256)) block(256)
__global__ void silu_and_mul(const half* x, half* out, int tokens, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < tokens * width) {
        int token = i / width;
        int column = i % width;
        float gate = __half2float(x[token * 2 * width + column]);
        float value = __half2float(x[token * 2 * width + width + column]);
        out[i] = __float2half(gate / (1.0f + expf(-gate)) * value);
    }
}
