#include <cuda_fp16.h>
#pragma optiml launch half_rows grid(rows) block(32)
__global__ void half_rows(const float* x, float* out, int rows, int cols) {
    __half sum = __float2half(0.0f);
    for (int c = threadIdx.x; c < cols; c += 32) {
        __half value = __float2half(x[blockIdx.x * cols + c]);
        sum = __hadd(sum, __hmul(value, value));
    }
    float whole = __half2float(sum);
    for (int d = 16; d > 0; d /= 2) whole += __shfl_xor_sync(0xffffffff, whole, d);
    float scale = whole > 0.0f ? rsqrtf(whole) : 0.0f;
    for (int c = threadIdx.x; c < cols; c += 32) out[blockIdx.x * cols + c] = x[blockIdx.x * cols + c] * scale;
}
