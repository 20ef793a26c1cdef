#pragma optiml launch laplace_3d grid(cdiv(nx, 8), cdiv(ny, 8), cdiv(nz, 4)) block(8, 8, 4)
__global__ void laplace_3d(const float* u, float* out, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz) {
        int i = (z * ny + y) * nx + x;
        if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1) {
            out[i] = u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - nx * ny] + u[i + nx * ny]
                     - 6.0f * u[i];
        } else {
            out[i] = 0.0f;
        }
    }
}
