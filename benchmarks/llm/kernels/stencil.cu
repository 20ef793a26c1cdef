// A step of diffusion: each cell moves towards the mean of its four neighbours.
__global__ void stencil(const float* u, float* out, int height, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // row
    int j = blockIdx.y * blockDim.y + threadIdx.y;  // column
    if (i >= height || j >= width) return;
    if (i == 0 || j == 0 || i == height - 1 || j == width - 1) {
        out[i * width + j] = u[i * width + j];
    } else {
        float around = u[(i - 1) * width + j] + u[(i + 1) * width + j]
                     + u[i * width + j - 1] + u[i * width + j + 1];
        out[i * width + j] = 0.5 * u[i * width + j] + 0.125 * around;
    }
}
#pragma optiml launch stencil grid(cdiv(height, 16), cdiv(width, 16)) block(16, 16)
