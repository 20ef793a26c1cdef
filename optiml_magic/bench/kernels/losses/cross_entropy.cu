#pragma optiml launch cross_entropy grid(cdiv(rows, 256)) block(256)
__global__ void cross_entropy(const float* logits, const int* targets, float* losses, int rows,
                              int classes) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float top = logits[row * classes];
        for (int c = 1; c < classes; c++) {
            if (logits[row * classes + c] > top) top = logits[row * classes + c];
        }
        float sum = 0.0f;
        for (int c = 0; c < classes; c++) {
            sum += expf(logits[row * classes + c] - top);
        }
        losses[row] = logf(sum) - (logits[row * classes + targets[row]] - top);
    }
}
