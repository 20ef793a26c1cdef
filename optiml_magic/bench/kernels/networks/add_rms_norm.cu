#include <cuda_fp16.h>

#pragma optiml launch add_rms_norm grid(cdiv(rows, 256)) block(256)
__global__ void add_rms_norm(const half* x, const half* residual, const half* weight, half* out,
                             half* sum, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float squares = 0.0f;
    for (int j = 0; j < cols; j++) {
        float v = __half2float(x[row * cols + j]) + __half2float(residual[row * cols + j]);
        sum[row * cols + j] = __float2half(v);
        squares += v * v;
    }
    float scale = rsqrtf(squares / cols + 1e-6f);
    for (int j = 0; j < cols; j++) {
        float v = __half2float(x[row * cols + j]) + __half2float(residual[row * cols + j]);
        out[row * cols + j] = __float2half(v * scale * __half2float(weight[j]));
    }
}
