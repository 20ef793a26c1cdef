// A small policy on many states: one hidden layer, and actions that are squashed.
__global__ void policy(const float *state, const float *w1, const float *b1, const float *w2, float *action,
                       int robots, int sensed, int hidden)
{
    int robot = blockIdx.x * blockDim.x + threadIdx.x;
    if (robot >= robots) return;
    const float *own = state + robot * sensed;
    float push[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int u = 0; u < hidden; u++) {
        float a = b1[u];
        for (int i = 0; i < sensed; i++)
            a += w1[u * sensed + i] * own[i];
        a = fmaxf(a, 0.0f);
        for (int o = 0; o < 4; o++)
            push[o] += w2[o * hidden + u] * a;
    }
    for (int o = 0; o < 4; o++)
        action[robot * 4 + o] = tanhf(push[o]);
}
#pragma optiml launch policy grid(cdiv(robots, 128)) block(128)
