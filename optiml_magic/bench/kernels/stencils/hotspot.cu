#define TILE 16

// several steps in a tile of shared memory, of which the rim is right no more after each
#pragma optiml launch hotspot grid(cdiv(cols, 16 - 2 * steps), cdiv(rows, 16 - 2 * steps)) block(16, 16)
__global__ void hotspot(const float* power, const float* temp, float* out, int cols, int rows,
                        int steps, float cap, float rx, float ry, float rz, float ambient) {
    __shared__ float now[TILE][TILE];
    __shared__ float heat[TILE][TILE];
    __shared__ float next[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int inner = TILE - 2 * steps;
    int x = inner * blockIdx.x + tx - steps;
    int y = inner * blockIdx.y + ty - steps;
    bool inside = x >= 0 && x < cols && y >= 0 && y < rows;
    if (inside) {
        now[ty][tx] = temp[y * cols + x];
        heat[ty][tx] = power[y * cols + x];
    }
    __syncthreads();
    // beyond the edge of the chip a neighbour is the cell itself
    int west = x > 0 ? tx - 1 : tx;
    int east = x < cols - 1 ? tx + 1 : tx;
    int north = y > 0 ? ty - 1 : ty;
    int south = y < rows - 1 ? ty + 1 : ty;
    for (int i = 1; i <= steps; i++) {
        bool computed = inside && tx >= i && tx < TILE - i && ty >= i && ty < TILE - i;
        if (computed) {
            next[ty][tx] = now[ty][tx] + cap * (heat[ty][tx] +
                           (now[south][tx] + now[north][tx] - 2.0 * now[ty][tx]) * ry +
                           (now[ty][east] + now[ty][west] - 2.0 * now[ty][tx]) * rx +
                           (ambient - now[ty][tx]) * rz);
        }
        __syncthreads();
        if (computed) now[ty][tx] = next[ty][tx];
        __syncthreads();
    }
    if (inside && tx >= steps && tx < TILE - steps && ty >= steps && ty < TILE - steps) {
        out[y * cols + x] = now[ty][tx];
    }
}
