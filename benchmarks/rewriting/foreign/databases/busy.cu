// Rows that failed among the 200 around each, for a monitor; stations lie side by side.
__global__ void busy(const unsigned char *failed, short *around, int rows, int stations) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int station = blockIdx.y;
  if (row >= rows) return;
  short count = 0;
  for (int k = row - 100; k < row + 100; ++k) {
    if (k >= 0 && k < rows) count += failed[station * rows + k];
  }
  around[station * rows + row] = count;
}
#pragma optiml launch busy grid(cdiv(rows, 256), stations) block(256)
