#pragma optiml launch nbody grid(cdiv(n, 32)) block(32)
__global__ void nbody(const float* px, const float* py, const float* mass, float* ax, float* ay,
                      int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum_x = 0.0f;
    float sum_y = 0.0f;
    for (int j = 0; j < n; ++j) {
        float dx = px[j] - px[i];
        float dy = py[j] - py[i];
        float distance = dx * dx + dy * dy + 0.01f;
        float weight = mass[j] / (distance * sqrtf(distance));
        sum_x += weight * dx;
        sum_y += weight * dy;
    }
    ax[i] = sum_x;
    ay[i] = sum_y;
}
