// While decoding: the log of the normaliser, and the expected score, of each row of scores.
__global__ void decode_sums(const float *scores, float *log_norm, float *expected, float temperature, int rows, int vocab)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const float *s = scores + (size_t)row * vocab;
        float m = -INFINITY;
        float l = 0.0f;
        float a = 0.0f;
        for (int j = 0; j < vocab; ++j) {
            const float x = s[j] / temperature;
            const float m_new = x > m ? x : m;
            l = l * expf(m - m_new) + expf(x - m_new);
            a = a * expf(m - m_new) + x * expf(x - m_new);
            m = m_new;
        }
        log_norm[row] = m + logf(l);
        expected[row] = a / l;
    }
}
#pragma optiml launch decode_sums grid(cdiv(rows, 64)) block(64)
