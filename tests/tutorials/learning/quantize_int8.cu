// Row-wise symmetric quantisation: scale from the largest magnitude, round to nearest even.
#pragma optiml launch quantize grid(rows) block(64)
__global__ void quantize(const float *x, signed char *q, float *scales, int rows, int cols)
{
    __shared__ unsigned int largest;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    const float *row = x + blockIdx.x * cols;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        atomicMax(&largest, __float_as_uint(fabsf(row[c])));  // the bits of positive floats are ordered
    __syncthreads();
    float scale = __uint_as_float(largest) / 127.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        int v = __float2int_rn(row[c] / scale);
        q[blockIdx.x * cols + c] = (signed char)max(-127, min(127, v));
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}
