// SELECT SUM(cents) OVER (ORDER BY day ROWS 63 PRECEDING)
__global__ void moving_total(const int *cents, long long *total, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  long long sum = 0;
  for (int back = 0; back < 64; back++) {
    if (row - back < 0) break;
    sum += cents[row - back];
  }
  total[row] = sum;
}
#pragma optiml launch moving_total grid(cdiv(rows, 256)) block(256)
