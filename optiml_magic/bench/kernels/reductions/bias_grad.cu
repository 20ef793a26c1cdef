#pragma optiml launch bias_grad grid(OC) block(256) shared(256 * sizeof(double))
__global__ void bias_grad(float* dbias, const float* dout, int N, int OC) {
    extern __shared__ double partial[];
    int o = blockIdx.x;
    int tid = threadIdx.x;
    const float* x = dout + o;
    double sum = 0.0;
    for (int i = tid; i < N; i += blockDim.x) {
        sum += x[i * OC];
    }
    partial[tid] = sum;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
        if (tid < stride) {
            partial[tid] += partial[tid + stride];
        }
        __syncthreads();
    }
    if (tid == 0) {
        dbias[o] = partial[0];
    }
}
