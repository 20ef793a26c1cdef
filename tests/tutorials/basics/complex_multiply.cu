#include <cuComplex.h>

#pragma optiml launch complex_multiply grid(cdiv(n, 256)) block(256)
__global__ void complex_multiply(const cuFloatComplex *a, const cuFloatComplex *b, cuFloatComplex *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = cuCmulf(cuConjf(a[i]), b[i]);
}
