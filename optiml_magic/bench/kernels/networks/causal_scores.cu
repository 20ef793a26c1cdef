// qkv is [B, T, 3 * NH * HS]; scores are [B, NH, T, T]
#pragma optiml launch causal_scores grid(cdiv(B * NH * T * T, 256)) block(256)
__global__ void causal_scores(float* scores, const float* qkv, int B, int T, int NH, int HS) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * NH * T * T) {
        int t2 = idx % T;
        int t = (idx / T) % T;
        if (t2 > t) {
            scores[idx] = -INFINITY;
            return;
        }
        int h = (idx / (T * T)) % NH;
        int b = idx / (NH * T * T);
        int C = NH * HS;
        const float* query = qkv + b * T * C * 3 + t * C * 3 + h * HS;
        const float* key = qkv + b * T * C * 3 + t2 * C * 3 + h * HS + C;
        float value = 0.0f;
        for (int i = 0; i < HS; i++) {
            value += query[i] * key[i];
        }
        value *= 1.0 / sqrtf(HS);
        scores[idx] = value;
    }
}
