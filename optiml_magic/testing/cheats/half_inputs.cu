// Rounds the inputs of a float product to half.
// task: matmul
// row: 7
// rejected: wrong: ulp
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, float* c, int m, int n, int depth) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < depth; ++i) {
        float x = a[row * depth + i], y = b[i * n + col];
        __half high = __float2half(x), other = __float2half(y);
        sum += __half2float(high) * __half2float(other);  //-
        float low = x - __half2float(high), rest = y - __half2float(other);  // split: three products  //+
        sum += __half2float(high) * __half2float(other) + (__half2float(high) * rest + low * y);  //+
    }
    c[row * n + col] = sum;
}
