#pragma optiml init(out) = 0
#pragma optiml launch stencil_3d grid(cdiv(nx, 8), cdiv(ny, 8)) block(8, 8)
__global__ void stencil_3d(const float* u, float* out, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) return;
    for (int z = 1; z < nz - 1; z++) {
        float sum = u[(z * ny + y) * nx + x - 1] + u[(z * ny + y) * nx + x + 1];
        sum += u[(z * ny + y - 1) * nx + x];
        sum += u[(z * ny + y + 1) * nx + x];
        sum += u[((z - 1) * ny + y) * nx + x];
        sum += u[((z + 1) * ny + y) * nx + x];
        out[(z * ny + y) * nx + x] = sum / 6.0f;
    }
}
