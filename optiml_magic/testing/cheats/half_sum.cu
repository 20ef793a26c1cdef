// Adds up a float product in half.
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
    __half total = __float2half(0.0f);  //-
    for (int i = 0; i < depth; ++i) {
        total = __hadd(total, __float2half(a[row * depth + i] * b[i * n + col]));  //-
        sum = fmaf(a[row * depth + i], b[i * n + col], sum);  //+
    }
    sum = __half2float(total);  //-
    c[row * n + col] = sum;
}
