// The inverse: a thread a pixel adds up 64 waves.
#pragma optiml launch luma_back grid(w / 8, h / 8) block(8, 8)
__global__ void luma_back(const float* coefficients, float* luma, int w, int h) {
  const int x = threadIdx.x, y = threadIdx.y, left = blockIdx.x * 8, top = blockIdx.y * 8;
  float sum = 0.0f;
  for (int v = 0; v < 8; ++v) {
    for (int u = 0; u < 8; ++u) {
      float wave = cosf((2 * x + 1) * u * 0.19634954f) * cosf((2 * y + 1) * v * 0.19634954f);
      sum += coefficients[(top + v) * w + left + u] * wave;
    }
  }
  luma[(top + y) * w + left + x] = sum * 0.25f;
}
