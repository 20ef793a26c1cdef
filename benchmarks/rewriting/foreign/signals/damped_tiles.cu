// Tiles against damped waves along both axes; the tile is brought by its threads.
#pragma optiml launch damped_tiles grid(w / 8, h / 8) block(8, 8)
__global__ void damped_tiles(const float* field, float* modes, int w, int h) {
  __shared__ float tile[8][8];
  int i = threadIdx.x, j = threadIdx.y;
  tile[j][i] = field[(blockIdx.y * 8 + j) * w + blockIdx.x * 8 + i];
  __syncthreads();
  float sum = 0.f;
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 8; x++)
      sum += tile[y][x] * expf(-0.05f * x * i) * cosf(y * j * 0.39269908f);
  modes[(blockIdx.y * 8 + j) * w + blockIdx.x * 8 + i] = sum;
}
