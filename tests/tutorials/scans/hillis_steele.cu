// Inclusive scan of each block, double buffered in dynamic shared memory.
#pragma optiml launch hillis_steele grid(cdiv(n, 256)) block(256) shared(2 * 256 * 4)
__global__ void hillis_steele(const float *in, float *out, int n)
{
    extern __shared__ float temp[];
    int tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
    int pout = 0, pin = 1;
    temp[pout * blockDim.x + tid] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int offset = 1; offset < blockDim.x; offset *= 2) {
        pout = 1 - pout;
        pin = 1 - pout;
        if (tid >= offset)
            temp[pout * blockDim.x + tid] = temp[pin * blockDim.x + tid] + temp[pin * blockDim.x + tid - offset];
        else
            temp[pout * blockDim.x + tid] = temp[pin * blockDim.x + tid];
        __syncthreads();
    }
    if (i < n) out[i] = temp[pout * blockDim.x + tid];
}
