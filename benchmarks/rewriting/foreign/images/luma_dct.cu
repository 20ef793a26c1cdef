// The discrete cosine transform of JPEG by its definition: a thread a coefficient.
#pragma optiml launch luma_dct grid(w / 8, h / 8) block(8, 8)
__global__ void luma_dct(const float* luma, float* coefficients, int w, int h) {
  int u = threadIdx.x, v = threadIdx.y;
  int x0 = blockIdx.x * 8, y0 = blockIdx.y * 8;
  float cu = u == 0 ? 0.70710678f : 1.0f, cv = v == 0 ? 0.70710678f : 1.0f;
  float sum = 0.0f;
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 8; x++)
      sum += luma[(y0 + y) * w + x0 + x] * cosf((2 * x + 1) * u * 3.14159265f / 16.0f) * cosf((2 * y + 1) * v * 3.14159265f / 16.0f);
  coefficients[(y0 + v) * w + x0 + u] = 0.25f * cu * cv * sum;
}
