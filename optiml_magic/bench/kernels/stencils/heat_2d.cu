#pragma optiml launch heat_2d grid(cdiv(nx, 16), cdiv(ny, 16)) block(16, 16)
__global__ void heat_2d(const float* u, float* out, float c, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int i = y * nx + x;
    if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1) {
        out[i] = u[i];
    } else {
        out[i] = u[i] + c * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - 4.0 * u[i]);
    }
}
