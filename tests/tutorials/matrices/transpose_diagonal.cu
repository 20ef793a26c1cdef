#define TILE_DIM 16

// Blocks are renamed along diagonals, against partition camping on old chips.
#pragma optiml launch transposeDiagonal grid(width / 16, height / 16) block(16, 16)
__global__ void transposeDiagonal(double *odata, double *idata, int width, int height)
{
    __shared__ double tile[TILE_DIM][TILE_DIM + 1];
    int blockIdx_x, blockIdx_y;
    if (width == height) {
        blockIdx_y = blockIdx.x;
        blockIdx_x = (blockIdx.x + blockIdx.y) % gridDim.x;
    } else {
        int bid = blockIdx.x + gridDim.x * blockIdx.y;
        blockIdx_y = bid % gridDim.y;
        blockIdx_x = ((bid / gridDim.y) + blockIdx_y) % gridDim.x;
    }
    int xIndex = blockIdx_x * TILE_DIM + threadIdx.x;
    int yIndex = blockIdx_y * TILE_DIM + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = idata[xIndex + yIndex * width];
    xIndex = blockIdx_y * TILE_DIM + threadIdx.x;
    yIndex = blockIdx_x * TILE_DIM + threadIdx.y;
    __syncthreads();
    odata[xIndex + yIndex * height] = tile[threadIdx.x][threadIdx.y];
}
