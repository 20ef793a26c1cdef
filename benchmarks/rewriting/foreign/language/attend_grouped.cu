// Grouped queries: four heads of queries share one of keys and values. Tokens lie outside heads.
constexpr int kDim = 64;
constexpr int kGroup = 4;

__global__ void attend_grouped(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                               float* __restrict__ o, int tokens, int heads, float scale)
{
    int token = blockIdx.x * blockDim.x + threadIdx.x;
    int head = blockIdx.y;
    int kv_heads = heads / kGroup;
    int kv = head / kGroup;
    if (token >= tokens) return;

    float mine[kDim], acc[kDim];
    for (int d = 0; d < kDim; d++) {
        mine[d] = q[(token * heads + head) * kDim + d] * scale;
        acc[d] = 0.0f;
    }
    float m = -INFINITY, z = 0.0f;
    for (int j = 0; j < tokens; j++) {
        if (j > token) break;
        float s = 0.0f;
        for (int d = 0; d < kDim; d++) s = fmaf(mine[d], k[(j * kv_heads + kv) * kDim + d], s);
        float top = fmaxf(m, s);
        float old = expf(m - top), now = expf(s - top);
        z = z * old + now;
        for (int d = 0; d < kDim; d++) acc[d] = acc[d] * old + now * v[(j * kv_heads + kv) * kDim + d];
        m = top;
    }
    float inv = 1.0f / z;
    for (int d = 0; d < kDim; d++) o[(token * heads + head) * kDim + d] = acc[d] * inv;
}
#pragma optiml launch attend_grouped grid(cdiv(tokens, 128), heads) block(128)
