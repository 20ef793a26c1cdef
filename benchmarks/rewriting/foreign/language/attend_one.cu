// One query of each head against its cache, scores and values in one loop.
#define DIM 16
#pragma optiml launch attend_one grid(cdiv(heads, 32)) block(32)
__global__ void attend_one(const float *score, const float *values, float *out, int heads, int keys)
{
    int h = blockIdx.x * blockDim.x + threadIdx.x;
    if (h >= heads) return;
    float acc[DIM];
    for (int d = 0; d < DIM; d++) acc[d] = 0.0f;
    float m = -3.0e38f, l = 0.0f;
    for (int j = 0; j < keys; j++) {
        float s = score[h * keys + j];
        float m_next = fmaxf(m, s);
        float shrink = expf(m - m_next), p = expf(s - m_next);
        l = l * shrink + p;
        for (int d = 0; d < DIM; d++) acc[d] = acc[d] * shrink + p * values[(h * keys + j) * DIM + d];
        m = m_next;
    }
    for (int d = 0; d < DIM; d++) out[h * DIM + d] = acc[d] / l;
}
