// Density of a periodic box coarse-grained by a tent, twice the cells across.
__global__ void coarse_grain(const double *rho, double *coarse, int n, int b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n) return;
    int cx = i % n, cy = i / n;
    double sum = 0.0;
    for (int jy = cy - b; jy <= cy + b; jy++) {
        double ty = 1.0 - fabs((double)(jy - cy)) / (b + 1);
        for (int jx = cx - b; jx <= cx + b; jx++) {
            double tx = 1.0 - fabs((double)(jx - cx)) / (b + 1);
            sum += tx * ty * rho[((jy + n) % n) * n + (jx + n) % n];
        }
    }
    coarse[i] = sum / ((b + 1) * (b + 1));
}
#pragma optiml launch coarse_grain grid(cdiv(n * n, 256)) block(256)
