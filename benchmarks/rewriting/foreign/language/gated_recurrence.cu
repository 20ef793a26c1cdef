// Linear attention with a gate a head: a thread holds a column of the head's state.
#define DK 64
#pragma optiml launch gated_recurrence grid(cdiv(dv, 64), heads) block(64)
__global__ void gated_recurrence(const float *q, const float *k, const float *v, const float *gate, float *o,
                                 int heads, int tokens, int dv)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int head = blockIdx.y;
    if (col >= dv) return;
    float state[DK];
    for (int i = 0; i < DK; ++i) state[i] = 0.0f;
    for (int t = 0; t < tokens; ++t) {
        int at = head * tokens + t;
        float g = 1.0f / (1.0f + expf(-gate[at])), value = v[at * dv + col], sum = 0.0f;
        for (int i = 0; i < DK; ++i) {
            state[i] = g * state[i] + k[at * DK + i] * value;
            sum += q[at * DK + i] * state[i];
        }
        o[at * dv + col] = sum;
    }
}
