// Two experts of 64 for each token, and how many tokens each expert gets.
#define EXPERTS 64
#pragma optiml zero(load)
#pragma optiml launch expert_gate grid(cdiv(tokens, 128)) block(128)
__global__ void expert_gate(const float* logits, float* weight, int* expert, int* load, int tokens)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tokens) return;
    float p[EXPERTS], most = -1e30f, sum = 0.0f;
    for (int e = 0; e < EXPERTS; e++) most = fmaxf(most, logits[t * EXPERTS + e]);
    for (int e = 0; e < EXPERTS; e++) { p[e] = expf(logits[t * EXPERTS + e] - most); sum += p[e]; }
    for (int k = 0; k < 2; k++) {
        int best = 0;
        float found = -1.0f;
        for (int e = 0; e < EXPERTS; e++) if (p[e] > found) { found = p[e]; best = e; }
        p[best] = -2.0f;
        expert[t * 2 + k] = best;
        weight[t * 2 + k] = found / sum;
        atomicAdd(load + best, 1);
    }
}
