const int TILE_DIM = 32;
const int BLOCK_ROWS = 8;

#pragma optiml launch transposeNaive grid(width / 32, height / 32) block(32, 8)
__global__ void transposeNaive(float *odata, const float *idata, int width, int height)
{
    int x = blockIdx.x * TILE_DIM + threadIdx.x;
    int y = blockIdx.y * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        odata[x * height + (y + j)] = idata[(y + j) * width + x];
}
