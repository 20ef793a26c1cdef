// First differences along columns, of a tile that was loaded by rows and is stored turned.
#define DIM 64
__global__ void column_filter(const float* in, float* out, int w, int h)
{
    __shared__ float tile[DIM][DIM];
    const int lane = threadIdx.x, group = threadIdx.y;
    const int x0 = blockIdx.x * DIM, y0 = blockIdx.y * DIM;
    for (int j = group; j < DIM; j += 8)
        for (int i = lane; i < DIM; i += 32)
            if (y0 + j < h && x0 + i < w) tile[j][i] = in[(y0 + j) * w + x0 + i];
    __syncthreads();
    for (int i = group; i < DIM; i += 8)
        for (int j = lane; j < DIM; j += 32)
            if (x0 + i < w && y0 + j < h) out[(x0 + i) * h + y0 + j] = j > 0 ? tile[j][i] - tile[j - 1][i] : tile[j][i];
}
#pragma optiml launch column_filter grid(cdiv(w, 64), cdiv(h, 64)) block(32, 8)
