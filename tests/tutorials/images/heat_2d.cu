// Explicit heat equation; two buffers swapped after each time step.
#pragma optiml scratch next float[ny * nx]
#pragma optiml launch copy_edges grid(cdiv(nx, 16), cdiv(ny, 16)) block(16, 16) args(u, next, nx, ny)
#pragma optiml repeat(4) swap(u, next)
#pragma optiml launch heat_step grid(cdiv(nx, 16), cdiv(ny, 16)) block(16, 16) args(u, next, r, nx, ny)

#define IDX(i, j) ((j) * nx + (i))

__global__ void copy_edges(const float *u, float *next, int nx, int ny)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < nx && j < ny && (i == 0 || j == 0 || i == nx - 1 || j == ny - 1)) next[IDX(i, j)] = u[IDX(i, j)];
}

__global__ void heat_step(const float *u, float *u_new, float r, int nx, int ny)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1) {
        float centre = u[IDX(i, j)];
        u_new[IDX(i, j)] = centre + r * (u[IDX(i - 1, j)] + u[IDX(i + 1, j)] + u[IDX(i, j - 1)] + u[IDX(i, j + 1)] - 4.0f * centre);
    }
}
