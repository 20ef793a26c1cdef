// The mass in each cell of a grid, from the cell that each particle is in.
#pragma optiml launch mass_by_cell grid((cells + 255) / 256) block(256)
__global__ void mass_by_cell(const int* cell, const float* mass, double* in_cell, int particles, int cells)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    double m = 0;
    int p = 0;
    while (p < particles) {
        if (cell[p] == c) m += mass[p];
        p++;
    }
    in_cell[c] = m;
}
