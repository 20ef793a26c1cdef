#define N 8

#pragma optiml launch cholesky grid(cdiv(count, 256)) block(256)
__global__ void cholesky(const float* a, float* lower, int count) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= count) return;
    const float* in = a + id * N * N;
    float* l = lower + id * N * N;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            if (j > i) {
                l[i * N + j] = 0.0f;
                continue;
            }
            float sum = in[i * N + j];
            for (int k = 0; k < j; k++) sum -= l[i * N + k] * l[j * N + k];
            l[i * N + j] = i == j ? sqrtf(sum) : sum / l[j * N + j];
        }
    }
}
