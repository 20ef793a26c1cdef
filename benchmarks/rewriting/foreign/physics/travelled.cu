// How far each walker has come after each step.
#pragma optiml launch travelled grid(cdiv(walkers, 32)) block(32)
__global__ void travelled(const float2* steps, float* way, int walkers, int count) {
    int walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= walkers) return;
    float far = 0.f;
    for (int i = 0; i < count; ++i) {
        float2 step = steps[walker * count + i];
        far += sqrtf(step.x * step.x + step.y * step.y);
        way[walker * count + i] = far;
    }
}
