// The pull of all bodies on each, softened so that a body does not pull itself.
__global__ void bodies(const float* position, const float* mass, float* pull, int n, float soft) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int j = 0; j < n; j++) {
        float dx = position[3 * j] - position[3 * i];
        float dy = position[3 * j + 1] - position[3 * i + 1];
        float dz = position[3 * j + 2] - position[3 * i + 2];
        float distance = sqrtf(dx * dx + dy * dy + dz * dz + soft);
        ax += mass[j] * dx / (distance * distance * distance);
        ay += mass[j] * dy / (distance * distance * distance);
        az += mass[j] * dz / (distance * distance * distance);
    }
    pull[3 * i] = ax;
    pull[3 * i + 1] = ay;
    pull[3 * i + 2] = az;
}
#pragma optiml launch bodies grid(cdiv(n, 256)) block(256)
