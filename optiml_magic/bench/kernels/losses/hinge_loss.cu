#pragma optiml zero(loss)
#pragma optiml launch hinge_loss grid(cdiv(n, 256)) block(256)
__global__ void hinge_loss(const float* predictions, const float* targets, float* loss, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float margin = 1.0f - predictions[i] * targets[i];
        if (margin > 0.0f) {
            atomicAdd(loss, margin / n);
        }
    }
}
