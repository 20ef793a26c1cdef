// Compensated summation in each thread, a plain tree over the threads.
struct Kahan {
    float sum = 0.0f, error = 0.0f;
    __device__ void add(float value)
    {
        float y = value - error;
        float t = sum + y;
        error = (t - sum) - y;
        sum = t;
    }
};

#pragma optiml launch dot_kahan grid(1) block(64)
__global__ void dot_kahan(const float *a, const float *b, float *out, int n)
{
    __shared__ float cache[64];
    Kahan k;
    for (int i = threadIdx.x; i < n; i += blockDim.x) k.add(a[i] * b[i]);
    cache[threadIdx.x] = k.sum;
    __syncthreads();
    for (int i = blockDim.x / 2; i != 0; i /= 2) {
        if (threadIdx.x < i) cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[0] = cache[0];
}
