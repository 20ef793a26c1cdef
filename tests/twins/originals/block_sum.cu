#pragma optiml launch block_sum grid(cdiv(n, 128)) block(128)
__global__ void block_sum(const float* x, float* out, int n) {
    __shared__ float partial[128];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half = half / 2) {
        if (t < half) {
            partial[t] = partial[t] + partial[t + half];
        }
        __syncthreads();
    }
    if (t == 0) {
        out[blockIdx.x] = partial[0];
    }
}
