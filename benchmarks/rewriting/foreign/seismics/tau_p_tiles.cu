// Local slant stacks of tiles of a gather, by phases.
#pragma optiml launch tau_p_tiles grid(w / 8, h / 8) block(8, 8)
__global__ void tau_p_tiles(const float* gather, float* stack, int w, int h) {
  int p = threadIdx.x, f = threadIdx.y;
  float sum = 0.0f;
  for (int t = 0; t < 8; t++)
    for (int r = 0; r < 8; r++)
      sum += gather[(blockIdx.y * 8 + t) * w + blockIdx.x * 8 + r] * cosf(0.2f * p * (r + 1)) * sinf(0.3f * (t + 1) * f);
  stack[(blockIdx.y * 8 + f) * w + blockIdx.x * 8 + p] = sum;
}
