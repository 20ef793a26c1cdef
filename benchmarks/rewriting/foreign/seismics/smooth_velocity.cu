// A velocity model smoothed for ray tracing: its slowness, under a Gaussian that is longer than it is deep. Depth runs fastest.
#pragma optiml launch smooth_velocity grid(cdiv(nz, 32), cdiv(nx, 8)) block(32, 8)
__global__ void smooth_velocity(const float* v, float* smooth, int nx, int nz, int rx, int rz, float sx, float sz)
{
    int iz = threadIdx.x + blockIdx.x * blockDim.x;
    int ix = threadIdx.y + blockIdx.y * blockDim.y;
    if (ix >= nx || iz >= nz) return;
    float slow = 0.f, total = 0.f;
    for (int kx = -rx; kx <= rx; kx++) {
        for (int kz = -rz; kz <= rz; kz++) {
            int jx = min(nx - 1, max(0, ix + kx));
            int jz = min(nz - 1, max(0, iz + kz));
            float g = expf(-0.5f * (kx * kx / (sx * sx) + kz * kz / (sz * sz)));
            slow += g / v[jx * nz + jz];
            total += g;
        }
    }
    smooth[ix * nz + iz] = slow / total;
}
