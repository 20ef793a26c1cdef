// Causal attention whose scores fall off with the distance between tokens, at a slope of each head.
#define HEAD_DIM 64
#pragma optiml launch attend_biased grid(cdiv(seq_len, 128), n_heads) block(128)
__global__ void attend_biased(const float* __restrict__ Q, const float* __restrict__ K, const float* __restrict__ V,
                              const float* __restrict__ slopes, float* __restrict__ O, int seq_len, int n_heads)
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const int h = blockIdx.y;
    if (t >= seq_len) return;

    const float* q = Q + (h * seq_len + t) * HEAD_DIM;
    const float slope = slopes[h];
    float out[HEAD_DIM];
    for (int c = 0; c < HEAD_DIM; ++c) out[c] = 0.f;
    float running_max = -FLT_MAX, running_sum = 0.f;

    for (int s = 0; s <= t; ++s) {
        const float* k = K + (h * seq_len + s) * HEAD_DIM;
        const float* v = V + (h * seq_len + s) * HEAD_DIM;
        float score = 0.f;
        for (int c = 0; c < HEAD_DIM; ++c) score += q[c] * k[c];
        score = score * 0.125f - slope * (t - s);
        if (score > running_max) {
            const float rescale = expf(running_max - score);
            running_sum *= rescale;
            for (int c = 0; c < HEAD_DIM; ++c) out[c] *= rescale;
            running_max = score;
        }
        const float w = expf(score - running_max);
        running_sum += w;
        for (int c = 0; c < HEAD_DIM; ++c) out[c] += w * v[c];
    }
    for (int c = 0; c < HEAD_DIM; ++c) O[(h * seq_len + t) * HEAD_DIM + c] = out[c] / running_sum;
}
