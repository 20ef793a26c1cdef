// A block walks back through the lattice of one option, its threads a block apart.
#define STEPS 512
#define THREADS 256
#pragma optiml launch lattice grid(options) block(THREADS)
__global__ void lattice(const float* spot, const float* strike, float* price, float up, float p, float q, int options)
{
    __shared__ float now[STEPS + 1], before[STEPS + 1];
    int o = blockIdx.x;
    for (int i = threadIdx.x; i <= STEPS; i += THREADS)
        now[i] = fmaxf(spot[o] * expf(up * (2 * i - STEPS)) - strike[o], 0.0f);
    __syncthreads();
    for (int step = STEPS; step > 0; step -= 2) {
        for (int i = threadIdx.x; i < step; i += blockDim.x) before[i] = p * now[i + 1] + q * now[i];
        __syncthreads();
        for (int i = threadIdx.x; i < step - 1; i += blockDim.x) now[i] = p * before[i + 1] + q * before[i];
        __syncthreads();
    }
    if (threadIdx.x == 0) price[o] = now[0];
}
