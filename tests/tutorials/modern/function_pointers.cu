typedef float (*unary_op)(float);

__device__ float twice(float x) { return x + x; }
__device__ float negated(float x) { return -x; }
__device__ float squared(float x) { return x * x; }

__device__ unary_op table[3] = {twice, negated, squared};

#pragma optiml launch dispatch grid(cdiv(n, 64)) block(64)
__global__ void dispatch(const float *x, const int *which, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[which[i]](x[i]);
}
