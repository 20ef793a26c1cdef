#pragma optiml tune TILE in {8, 16, 32} = 16
#pragma optiml tune PAD in {0, 1} = 1
#pragma optiml launch transpose<TILE> grid(cdiv(cols, TILE), cdiv(rows, TILE)) block(TILE, TILE)
template <int SIZE>
__global__ void transpose(const float *__restrict__ in, float *__restrict__ out, int rows, int cols)
{
    __shared__ float tile[SIZE][SIZE + PAD];
    int c = blockIdx.x * SIZE + threadIdx.x, r = blockIdx.y * SIZE + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = in[r * cols + c];
    __syncthreads();
    c = blockIdx.y * SIZE + threadIdx.x;
    r = blockIdx.x * SIZE + threadIdx.y;
    if (r < cols && c < rows) out[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}
