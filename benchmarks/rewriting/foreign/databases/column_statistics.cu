// What a planner wants of each column, in two launches: its mean, then its spread.
#pragma optiml launch column_mean grid(cdiv(columns, 128)) block(128)
__global__ void column_mean(const float *table, float *mean, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int r = 0; r < rows; r++) sum += table[r * columns + c];
  mean[c] = sum / rows;
}
#pragma optiml launch column_spread grid(cdiv(columns, 128)) block(128)
__global__ void column_spread(const float *table, const float *mean, float *spread, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float squares = 0;
  float middle = mean[c];
  for (int r = 0; r < rows; r++) {
    float d = table[r * columns + c] - middle;
    squares += d * d;
  }
  spread[c] = sqrtf(squares / (rows - 1));
}
