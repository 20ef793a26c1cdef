// a block a row; one thread looks for the greatest and adds up
#pragma optiml launch block_softmax grid(rows) block(256)
__global__ void block_softmax(const float* x, float* y, int cols) {
    __shared__ float most, sum;
    const float* row = x + blockIdx.x * cols;
    if (threadIdx.x == 0) {
        float m = -INFINITY;
        for (int j = 0; j < cols; j++) m = fmaxf(m, row[j]);
        most = m;
        float s = 0.0f;
        for (int j = 0; j < cols; j++) s += expf(row[j] - m);
        sum = s;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < cols; j += blockDim.x)
        y[blockIdx.x * cols + j] = expf(row[j] - most) / sum;
}
