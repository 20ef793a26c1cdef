#pragma optiml init(out) = 0
#pragma optiml launch stencil_2d grid(cdiv(width, 16), cdiv(height, 8)) block(16, 8)
__global__ void stencil_2d(const float* u, float* out, int width, int height, float rate) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
        float centre = u[y * width + x];
        float around = u[(y - 1) * width + x] + u[(y + 1) * width + x];
        around += u[y * width + x - 1];
        around += u[y * width + x + 1];
        out[y * width + x] = centre + rate * (around - 4.0f * centre);
    }
}
