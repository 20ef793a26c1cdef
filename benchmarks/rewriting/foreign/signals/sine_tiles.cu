// A sine transform of tiles of a field, as for walls where it is zero.
#pragma optiml launch sine_tiles grid(w / 8, h / 8) block(8, 8)
__global__ void sine_tiles(const float* field, float* modes, int w, int h) {
  int i = threadIdx.x, j = threadIdx.y;
  float sum = 0.f;
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 8; x++)
      sum += field[(blockIdx.y * 8 + y) * w + blockIdx.x * 8 + x] * sinf((x + 1) * (i + 1) * 0.34906585f) * sinf((y + 1) * (j + 1) * 0.34906585f);
  modes[(blockIdx.y * 8 + j) * w + blockIdx.x * 8 + i] = sum;
}
