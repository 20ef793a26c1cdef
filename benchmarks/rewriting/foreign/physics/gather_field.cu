// Field at particles by the cubic (PCS) shape function, on a periodic mesh of N^3 cells.
__device__ __forceinline__ float pcs(float s) {
    s = fabsf(s);
    if (s < 1.0f) return (4.0f - 6.0f * s * s + 3.0f * s * s * s) / 6.0f;
    if (s < 2.0f) return (2.0f - s) * (2.0f - s) * (2.0f - s) / 6.0f;
    return 0.0f;
}

#pragma optiml launch gather_field grid(cdiv(particles, 128)) block(128)
__global__ void gather_field(const float* mesh, const float4* pos, float* at, int particles, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= particles) return;
    float4 r = pos[p];
    int ix = (int)r.x - 1, iy = (int)r.y - 1, iz = (int)r.z - 1;
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) {
        float wz = pcs(r.z - (iz + k));
        for (int j = 0; j < 4; ++j) {
            float wy = pcs(r.y - (iy + j));
            for (int i = 0; i < 4; ++i) {
                float wx = pcs(r.x - (ix + i));
                int cell = (((iz + k + n) % n) * n + (iy + j + n) % n) * n + (ix + i + n) % n;
                sum += wz * wy * wx * mesh[cell];
            }
        }
    }
    at[p] = sum;
}
