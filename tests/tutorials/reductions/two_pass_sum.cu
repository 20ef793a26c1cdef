// Partial sums of the blocks, then one block for the partial sums.
#pragma optiml scratch partial float[cdiv(n, 512)]
#pragma optiml launch block_sums grid(cdiv(n, 512)) block(256)
#pragma optiml launch final_sum grid(1) block(256) args(partial, out, cdiv(n, 512))

__inline__ __device__ float warpReduceSum(float val)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        val += __shfl_down_sync(0xffffffff, val, offset);
    return val;
}

__inline__ __device__ float blockReduceSum(float val)
{
    static __shared__ float shared[32];
    int lane = threadIdx.x % warpSize;
    int wid = threadIdx.x / warpSize;
    val = warpReduceSum(val);
    if (lane == 0) shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
    if (wid == 0) val = warpReduceSum(val);
    return val;
}

__global__ void block_sums(const float *x, float *partial, int n)
{
    float sum = 0.0f;
    int begin = blockIdx.x * 512;
    for (int i = begin + threadIdx.x; i < begin + 512 && i < n; i += blockDim.x) sum += x[i];
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void final_sum(const float *partial, float *out, int count)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0) *out = sum;
}
