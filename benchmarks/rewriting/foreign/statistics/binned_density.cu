// A density in the plane from binned counts, by the product of two Epanechnikov kernels.
#pragma optiml launch binned_density grid(cdiv(bins, 16), cdiv(bins, 16)) block(16, 16)
__global__ void binned_density(const int* counts, float* density, int bins, int hx, int hy, float n)
{
    int bx = blockIdx.x * blockDim.x + threadIdx.x;
    int by = blockIdx.y * blockDim.y + threadIdx.y;
    if (bx < bins && by < bins) {
        float f = 0;
        for (int y = max(0, by - hy + 1); y < min(bins, by + hy); y++) {
            float v = (float)(y - by) / hy;
            for (int x = max(0, bx - hx + 1); x < min(bins, bx + hx); x++) {
                float u = (float)(x - bx) / hx;
                f += 0.75f * (1 - u * u) * 0.75f * (1 - v * v) * counts[y * bins + x];
            }
        }
        density[by * bins + bx] = f / (n * hx * hy);
    }
}
