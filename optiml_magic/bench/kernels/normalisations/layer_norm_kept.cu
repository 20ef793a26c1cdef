// inp is [N, C], a thread a row; the backward pass needs mean and rstd
#pragma optiml launch layer_norm_kept grid(cdiv(N, 256)) block(256)
__global__ void layer_norm_kept(float* out, float* mean, float* rstd, const float* inp,
                                const float* weight, const float* bias, int N, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < N) {
        float eps = 1e-5f;
        const float* x = inp + idx * C;
        float m = 0.0f;
        for (int i = 0; i < C; i++) {
            m += x[i];
        }
        m = m / C;
        float v = 0.0f;
        for (int i = 0; i < C; i++) {
            float shifted = x[i] - m;
            v += shifted * shifted;
        }
        v = v / C;
        float s = 1.0f / sqrtf(v + eps);
        float* y = out + idx * C;
        for (int i = 0; i < C; i++) {
            float n = s * (x[i] - m);
            y[i] = n * weight[i] + bias[i];
        }
        mean[idx] = m;
        rstd[idx] = s;
    }
}
