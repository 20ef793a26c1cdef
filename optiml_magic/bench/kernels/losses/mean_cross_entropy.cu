#pragma optiml zero(loss)
#pragma optiml launch mean_cross_entropy grid(cdiv(batch, 256)) block(256)
__global__ void mean_cross_entropy(const float* predictions, const int* targets, float* loss,
                                   int batch, int classes) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < batch) {
        const float* row = predictions + b * classes;
        float largest = row[0];
        for (int c = 1; c < classes; c++) {
            largest = fmaxf(largest, row[c]);
        }
        float sum = 0.0f;
        for (int c = 0; c < classes; c++) {
            sum += expf(row[c] - largest);
        }
        float one = logf(sum) + largest - row[targets[b]];
        atomicAdd(loss, one / batch);
    }
}
