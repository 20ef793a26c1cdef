// Local attention: a token sees the last few tokens and itself.
#define D 32
__global__ void attend_window(const float *q, const float *k, const float *v, float *y, int tokens, int window)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int head = blockIdx.y;
    if (i >= tokens) return;
    int base = head * tokens * D;
    float acc[D] = {0};
    float m = -1e30f, l = 0;
    int begin = i - window + 1;
    if (begin < 0) begin = 0;
    for (int j = begin; j <= i; j++) {
        float s = 0;
        for (int d = 0; d < D; d++)
            s += q[base + i * D + d] * k[base + j * D + d];
        s /= sqrtf((float)D);
        float m_new = max(m, s);
        float a = __expf(m - m_new);
        float p = __expf(s - m_new);
        l = a * l + p;
        for (int d = 0; d < D; d++)
            acc[d] = a * acc[d] + p * v[base + j * D + d];
        m = m_new;
    }
    for (int d = 0; d < D; d++)
        y[base + i * D + d] = acc[d] / l;
}
#pragma optiml launch attend_window grid(cdiv(tokens, 64), heads) block(64)
