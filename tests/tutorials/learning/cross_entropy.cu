#pragma optiml launch cross_entropy grid(rows) block(128)
__global__ void cross_entropy(const float *logits, const int *target, float *losses, float *dlogits, int rows, int classes)
{
    __shared__ float buffer[128];
    const float *x = logits + blockIdx.x * classes;
    int tid = threadIdx.x;

    float best = -INFINITY;
    for (int c = tid; c < classes; c += blockDim.x) best = fmaxf(best, x[c]);
    buffer[tid] = best;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (tid < s) buffer[tid] = fmaxf(buffer[tid], buffer[tid + s]);
        __syncthreads();
    }
    float top = buffer[0];
    __syncthreads();

    float sum = 0;
    for (int c = tid; c < classes; c += blockDim.x) sum += expf(x[c] - top);
    buffer[tid] = sum;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (tid < s) buffer[tid] += buffer[tid + s];
        __syncthreads();
    }
    float total = buffer[0];

    int label = target[blockIdx.x];
    if (tid == 0) losses[blockIdx.x] = logf(total) + top - x[label];
    for (int c = tid; c < classes; c += blockDim.x)
        dlogits[blockIdx.x * classes + c] = (expf(x[c] - top) / total - (c == label)) / rows;
}
