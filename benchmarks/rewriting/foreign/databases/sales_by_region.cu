// SELECT region, SUM(amount), COUNT(*) GROUP BY region: a thread for each region reads all rows.
#pragma optiml launch sales_by_region grid(cdiv(regions, 64)) block(64)
__global__ void sales_by_region(const int* region, const float* amount, float* total, int* rows,
                                int n, int regions) {
  int mine = blockIdx.x * blockDim.x + threadIdx.x;
  if (mine >= regions) return;
  float sum = 0.0f;
  int count = 0;
  for (int i = 0; i < n; i++) {
    if (region[i] == mine) {
      sum += amount[i];
      count++;
    }
  }
  total[mine] = sum;
  rows[mine] = count;
}
