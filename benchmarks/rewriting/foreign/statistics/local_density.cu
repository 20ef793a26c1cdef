// Density on a lattice of bins seen from places between them, by a biweight of eleven by eleven bins.
__device__ inline float biweight(float distance)
{
    if (distance >= 1.0f || distance <= -1.0f) return 0.0f;
    const float u = 1.0f - distance * distance;
    return 0.9375f * u * u * expf(-0.1f * distance * distance);
}

__global__ void local_density(const float *bins, const float *x, const float *y, float *density, int n, int across)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float px = x[i], py = y[i];
        const int column = (int)px - 5, row = (int)py - 5;
        float sum = 0.0f;
        for (int r = 0; r < 11; r++) {
            const float wy = biweight((py - (float)(row + r)) / 5.5f);
            for (int c = 0; c < 11; c++) {
                const float wx = biweight((px - (float)(column + c)) / 5.5f);
                sum += wx * wy * bins[(row + r) * across + column + c];
            }
        }
        density[i] = sum;
    }
}
#pragma optiml launch local_density grid(cdiv(n, 256)) block(256)
