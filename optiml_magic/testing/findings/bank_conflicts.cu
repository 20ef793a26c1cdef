// A tile whose columns lie in one bank; the other is padded by one.
// task: transpose
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(cols, 32), cdiv(rows, 32)) block(32, 32)
__global__ void k(const float* a, float* out, int rows, int cols) {
    __shared__ float tile[32][32];  //-
    __shared__ float tile[32][33];  //+
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = a[row * cols + col];
    __syncthreads();
    int to = blockIdx.x * 32 + threadIdx.y, from = blockIdx.y * 32 + threadIdx.x;
    if (to < cols && from < rows)
        out[to * rows + from] = tile[threadIdx.x][threadIdx.y];  //!
}
