// Packed pixels turned by a quarter.
template <int SIDE>
__global__ void quarter_turn(const unsigned int *in, unsigned int *out, int w, int h)
{
    __shared__ unsigned int tile[SIDE][SIDE];
    int x = blockIdx.x * SIDE + threadIdx.x;
    int y = blockIdx.y * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += 8)
        if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
    __syncthreads();
    int tx = blockIdx.y * SIDE + threadIdx.x;
    int ty = blockIdx.x * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += 8)
        if (tx < h && ty + j < w) out[(ty + j) * h + (h - 1 - tx)] = tile[threadIdx.x][threadIdx.y + j];
}
#pragma optiml launch quarter_turn<32> grid(cdiv(w, 32), cdiv(h, 32)) block(32, 8)
