#define MASK_DIM 5
#define MASK_OFFSET (MASK_DIM / 2)
#define TILE_SIZE 16
#define IN_TILE (TILE_SIZE + MASK_DIM - 1)

__constant__ int mask[MASK_DIM * MASK_DIM];

// The block covers the input tile; only its inner threads write.
#pragma optiml launch convolve grid(cdiv(width, 16), cdiv(height, 16)) block(20, 20)
__global__ void convolve(const int *image, int *result, int width, int height)
{
    __shared__ int tile[IN_TILE][IN_TILE];
    int col = blockIdx.x * TILE_SIZE + threadIdx.x - MASK_OFFSET;
    int row = blockIdx.y * TILE_SIZE + threadIdx.y - MASK_OFFSET;
    if (row >= 0 && row < height && col >= 0 && col < width)
        tile[threadIdx.y][threadIdx.x] = image[row * width + col];
    else
        tile[threadIdx.y][threadIdx.x] = 0;
    __syncthreads();
    int tx = threadIdx.x - MASK_OFFSET, ty = threadIdx.y - MASK_OFFSET;
    if (tx >= 0 && tx < TILE_SIZE && ty >= 0 && ty < TILE_SIZE && row < height && col < width) {
        int temp = 0;
        for (int i = 0; i < MASK_DIM; i++)
            for (int j = 0; j < MASK_DIM; j++) temp += mask[i * MASK_DIM + j] * tile[ty + i][tx + j];
        result[row * width + col] = temp;
    }
}
