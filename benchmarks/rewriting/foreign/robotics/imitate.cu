// Actions for many states at once, from what was shown: a Gaussian process whose weights were solved for before.
__device__ inline float likeness(const float* a, const float* b, int n, float scale)
{
    float d2 = 0.0f;
    for (int i = 0; i < n; i++) {
        float d = a[i] - b[i];
        d2 += d * d;
    }
    return expf(-scale * d2);
}

__global__ void imitate(const float* state, const float* shown, const float* alpha, float* action,
                        int states, int demos, float scale)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= states) return;
    float a[16];
    for (int j = 0; j < 16; j++) a[j] = 0.0f;
    for (int t = 0; t < demos; t++) {
        float w = likeness(state + i * 24, shown + t * 24, 24, scale);
        for (int j = 0; j < 16; j++) a[j] += w * alpha[t * 16 + j];
    }
    for (int j = 0; j < 16; j++) action[i * 16 + j] = a[j];
}
#pragma optiml launch imitate grid(cdiv(states, 128)) block(128)
