// Rounds the result to half on its way out.
// task: double
// row: 7
// rejected: wrong: ulp
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = 2.0f * x[i] + 1.0f;
    y = __half2float(__float2half(y));  //-
    out[i] = y;
}
