// one head a block: scores in shared memory, a softmax by one thread, the values by columns
#pragma optiml launch decode_block grid(heads) block(128) shared(length * 4)
__global__ void decode_block(const float* q, const float* keys, const float* values, float* out,
                             int length, int dim) {
    extern __shared__ float score[];
    __shared__ float total;
    int head = blockIdx.x;
    for (int t = threadIdx.x; t < length; t += blockDim.x) {
        float s = 0.0f;
        for (int i = 0; i < dim; i++)
            s += q[head * dim + i] * keys[(head * length + t) * dim + i];
        score[t] = s * rsqrtf((float)dim);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float most = score[0];
        for (int t = 1; t < length; t++) most = fmaxf(most, score[t]);
        float sum = 0.0f;
        for (int t = 0; t < length; t++) {
            score[t] = expf(score[t] - most);
            sum += score[t];
        }
        total = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < dim; i += blockDim.x) {
        float s = 0.0f;
        for (int t = 0; t < length; t++) s += score[t] * values[(head * length + t) * dim + i];
        out[head * dim + i] = s / total;
    }
}
