#define STEPS 256

// a block an option: a tree of prices, folded from its leaves to its root;
// up and down are the chances of both, discounted
#pragma optiml launch binomial grid(options) block(256)
__global__ void binomial(const float* price, const float* strike, const float* step,
                         const float* up, const float* down, float* call, int options) {
    __shared__ float value[STEPS + 1];
    int t = threadIdx.x;
    int option = blockIdx.x;
    for (int i = t; i <= STEPS; i += blockDim.x) {
        float leaf = price[option] * expf(step[option] * (2 * i - STEPS)) - strike[option];
        value[i] = leaf > 0.0f ? leaf : 0.0f;
    }
    __syncthreads();
    for (int left = STEPS; left > 0; left--) {
        float next = 0.0f;
        if (t < left) {
            next = up[option] * value[t + 1] + down[option] * value[t];
        }
        __syncthreads();
        if (t < left) value[t] = next;
        __syncthreads();
    }
    if (t == 0) call[option] = value[0];
}
