#pragma optiml launch gravity grid(cdiv(n, 256)) block(256)
__global__ void gravity(const float* position, const float* mass, float* acceleration, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int j = 0; j < n; j++) {
        float dx = position[3 * j] - position[3 * i];
        float dy = position[3 * j + 1] - position[3 * i + 1];
        float dz = position[3 * j + 2] - position[3 * i + 2];
        float d2 = dx * dx + dy * dy + dz * dz + 0.01f;
        float inverse = 1.0f / sqrtf(d2);
        float f = mass[j] * inverse * inverse * inverse;
        ax += f * dx;
        ay += f * dy;
        az += f * dz;
    }
    acceleration[3 * i] = ax;
    acceleration[3 * i + 1] = ay;
    acceleration[3 * i + 2] = az;
}
