__device__ int mandel(double cr, double ci, int limit)
{
    double zr = 0, zi = 0;
    int k = 0;
    while (k < limit && zr * zr + zi * zi <= 4.0) {
        double t = zr * zr - zi * zi + cr;
        zi = 2.0 * zr * zi + ci;
        zr = t;
        ++k;
    }
    return k;
}

__global__ void mandelbrot(int *image, int width, int height, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    // dyadic steps, so that every coordinate is exact
    double cr = -2.0 + px * 0.03125, ci = -1.0 + py * 0.03125;
    image[py * width + px] = mandel(cr, ci, limit);
}
