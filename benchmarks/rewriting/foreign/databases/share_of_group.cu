// amount / SUM(amount) OVER (PARTITION BY shop), shops of as many rows each
__global__ void share_of_shop(const float *amount, float *share, int shops, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int shop = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || shop >= shops) return;
  const float *mine = amount + shop * rows;
  float total = 0.0f;
  for (int other = 0; other < rows; other++) total += mine[other];
  share[shop * rows + row] = mine[row] / total;
}
#pragma optiml launch share_of_shop grid(cdiv(rows, 32), cdiv(shops, 4)) block(32, 4)
