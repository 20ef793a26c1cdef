// A dense associative memory recalls: states move to patterns that overlap with them, at an inverse temperature.
#define N 64
__global__ void recall(const float* state, const float* pattern, float* next, float beta, int states, int patterns)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= states) return;

    float h[N];
    for (int i = 0; i < N; i++) h[i] = 0;
    float zmax = -1e38f;
    float z = 0;

    for (int mu = 0; mu < patterns; mu++) {
        float overlap = 0;
        for (int i = 0; i < N; i++) overlap += pattern[mu * N + i] * state[s * N + i];
        float e = beta * overlap;
        float znew = e > zmax ? e : zmax;
        float fade = expf(zmax - znew);
        float boltzmann = expf(e - znew);
        zmax = znew;
        z = z * fade + boltzmann;
        for (int i = 0; i < N; i++) h[i] = h[i] * fade + boltzmann * pattern[mu * N + i];
    }

    for (int i = 0; i < N; i++) next[s * N + i] = h[i] / z;
}
#pragma optiml launch recall grid(cdiv(states, 64)) block(64)
