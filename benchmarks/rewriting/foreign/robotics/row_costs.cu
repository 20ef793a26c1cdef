// Least cost along each row of a cost map, tile by tile: columns are loaded together, rows searched alone.
#define T 32
__global__ void row_costs(const float* cost, float* least, int w, int h) {
    __shared__ float tile[T][T];
    int lane = threadIdx.x;
    int y0 = blockIdx.x * T;
    float best = 1e30f;
    for (int x0 = 0; x0 < w; x0 += T) {
        for (int r = 0; r < T; ++r) tile[r][lane] = (y0 + r < h && x0 + lane < w) ? cost[(y0 + r) * w + x0 + lane] : 1e30f;
        __syncwarp();
        for (int c = 0; c < T; ++c) best = fminf(best, tile[lane][c]);
        __syncwarp();
    }
    if (y0 + lane < h) least[y0 + lane] = best;
}
#pragma optiml launch row_costs grid(cdiv(h, 32)) block(32)
