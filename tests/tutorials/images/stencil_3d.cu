#define TX 16
#define TY 8

// Seven points; the block marches along z with the column in registers and the plane in shared memory.
#pragma optiml launch stencil_3d grid(cdiv(nx, TX_), cdiv(ny, TY_)) block(TX_, TY_)
__global__ void stencil_3d(const float *in, float *out, float c0, float c1, int nx, int ny, int nz)
{
    __shared__ float plane[TY + 2][TX + 2];
    int x = blockIdx.x * TX + threadIdx.x, y = blockIdx.y * TY + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int stride = nx * ny, at = y * nx + x;
    bool here = x < nx && y < ny;
    float behind = 0.0f, current = here ? in[at] : 0.0f;
    for (int z = 0; z < nz; ++z, at += stride) {
        float front = (here && z + 1 < nz) ? in[at + stride] : 0.0f;
        __syncthreads();
        plane[ty][tx] = current;
        if (threadIdx.x == 0) plane[ty][0] = (x > 0 && y < ny) ? in[at - 1] : 0.0f;
        if (threadIdx.x == TX - 1) plane[ty][TX + 1] = (x + 1 < nx && y < ny) ? in[at + 1] : 0.0f;
        if (threadIdx.y == 0) plane[0][tx] = (y > 0 && x < nx) ? in[at - nx] : 0.0f;
        if (threadIdx.y == TY - 1) plane[TY + 1][tx] = (y + 1 < ny && x < nx) ? in[at + nx] : 0.0f;
        __syncthreads();
        if (here)
            out[at] = c0 * current + c1 * (plane[ty][tx - 1] + plane[ty][tx + 1] + plane[ty - 1][tx] + plane[ty + 1][tx] + behind + front);
        behind = current;
        current = front;
    }
}
