// Positions and velocities updated in place, forces from rsqrtf.
struct System {
    const float *mass;
    float *vx, *vy;
};

#pragma optiml launch kick grid(cdiv(n, 64)) block(64)
__global__ void kick(const float *mass, const float *x, const float *y, float *vx, float *vy, float dt, int n)
{
    System s{mass, vx, vy};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float fx = 0, fy = 0;
    for (int j = 0; j < n; ++j) {
        float dx = x[j] - x[i], dy = y[j] - y[i];
        float inv = rsqrtf(dx * dx + dy * dy + 0.05f);
        float f = s.mass[j] * inv * inv * inv;
        fx += f * dx;
        fy += f * dy;
    }
    s.vx[i] += dt * fx;
    s.vy[i] += dt * fy;
}
