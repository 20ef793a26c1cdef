// Tokens of a window of a picture look at each other; where they lie to each other counts as well.
#define TOKENS 64
#define DIM 32
__global__ void window_attention(const float* q, const float* k, const float* v, const float* bias, float* out, int windows)
{
    const int w = blockIdx.x;
    const int i = threadIdx.x;
    const float* qi = &q[(w * TOKENS + i) * DIM];
    float largest = -1e30f;
    for (int j = 0; j < TOKENS; j++) {
        const float* kj = &k[(w * TOKENS + j) * DIM];
        float s = bias[i * TOKENS + j];
        for (int c = 0; c < DIM; c++) s += qi[c] * kj[c];
        largest = fmaxf(largest, s);
    }
    float norm = 0.0f;
    float r[DIM] = {};
    for (int j = 0; j < TOKENS; j++) {
        const float* kj = &k[(w * TOKENS + j) * DIM];
        const float* vj = &v[(w * TOKENS + j) * DIM];
        float s = bias[i * TOKENS + j];
        for (int c = 0; c < DIM; c++) s += qi[c] * kj[c];
        const float e = expf(s - largest);
        norm += e;
        for (int c = 0; c < DIM; c++) r[c] += e * vj[c];
    }
    for (int c = 0; c < DIM; c++) out[(w * TOKENS + i) * DIM + c] = r[c] / norm;
}
#pragma optiml launch window_attention grid(windows) block(TOKENS)
