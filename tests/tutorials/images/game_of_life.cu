// Torus; unsigned char cells; one generation a launch.
#pragma optiml scratch spare uint8_t[rows * cols]
#pragma optiml launch generation grid(cdiv(cols, 16), cdiv(rows, 16)) block(16, 16) args(cells, spare, rows, cols) repeat(6) swap(cells, spare)
__global__ void generation(const unsigned char *now, unsigned char *next, int rows, int cols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= rows || c >= cols) return;
    int alive = 0;
    for (int dr = -1; dr <= 1; ++dr)
        for (int dc = -1; dc <= 1; ++dc)
            if (dr || dc) alive += now[((r + dr + rows) % rows) * cols + (c + dc + cols) % cols];
    next[r * cols + c] = alive == 3 || (alive == 2 && now[r * cols + c]);
}
