// Records of 16 integers to one column each.
#define FIELDS 16
#define ROWS 64
__global__ void rows_to_columns(const int *record, int *column, int rows) {
  __shared__ int part[ROWS][FIELDS];
  int from = blockIdx.x * ROWS;
  for (int i = threadIdx.x; i < ROWS * FIELDS; i += blockDim.x)
    if (from + i / FIELDS < rows) part[i / FIELDS][i % FIELDS] = record[from * FIELDS + i];
  __syncthreads();
  if (from + threadIdx.x < rows)
    for (int f = 0; f < FIELDS; f++) column[f * rows + from + threadIdx.x] = part[threadIdx.x][f];
}
#pragma optiml launch rows_to_columns grid(cdiv(rows, 64)) block(64)
