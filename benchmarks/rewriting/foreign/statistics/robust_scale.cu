// Spread of each variable around its mean, variables side by side.
#pragma optiml launch spread grid(cdiv(variables, 32)) block(32)
__global__ void spread(const float* data, float* centre, float* scale, int samples, int variables)
{
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= variables) return;
    float total = 0.0f;
    for (int s = 0; s != samples; ++s) total += data[s * variables + v];
    const float middle = total / samples;
    float around = 0.0f;
    for (int s = 0; s != samples; ++s) around += powf(data[s * variables + v] - middle, 2.0f);
    centre[v] = middle;
    scale[v] = sqrtf(around / samples);
}
