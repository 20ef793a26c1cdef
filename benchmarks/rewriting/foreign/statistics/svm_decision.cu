// Decisions of a support vector machine with a radial kernel.
#pragma optiml launch svm_decision grid(cdiv(samples, 256)) block(256)
__global__ void svm_decision(const float* samples_x, const float* vectors, const float* alpha, float* decision,
                             float gamma, float bias, int samples, int support, int features)
{
    int s = blockDim.x * blockIdx.x + threadIdx.x;
    if (s >= samples) return;
    float f = -bias;
    for (int v = 0; v < support; ++v) {
        float dist = 0.f;
        for (int k = 0; k < features; ++k) {
            float diff = samples_x[s * features + k] - vectors[v * features + k];
            dist += diff * diff;
        }
        f += alpha[v] * __expf(-gamma * dist);
    }
    decision[s] = f;
}
