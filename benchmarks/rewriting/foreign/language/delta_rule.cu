// Fast weights that correct themselves: what the state says for a key is moved towards its value.
constexpr int D = 32;
#pragma optiml launch delta_rule grid(heads) block(32)
__global__ void delta_rule(const float* __restrict__ query, const float* __restrict__ key, const float* __restrict__ value,
                           const float* __restrict__ beta, float* __restrict__ out, int heads, int length) {
  const int h = blockIdx.x, c = threadIdx.x;
  float S[D] = {};
  for (int t = 0; t < length; t++) {
    const float* kt = key + (h * length + t) * D;
    const float* qt = query + (h * length + t) * D;
    float told = 0.f, long_ = 1e-6f;
    for (int d = 0; d < D; d++) {
      told += S[d] * kt[d];
      long_ += kt[d] * kt[d];
    }
    const float rate = 1.f / (1.f + expf(-beta[h * length + t])) / long_;
    const float u = rate * (value[(h * length + t) * D + c] - told);
    float y = 0.f;
    for (int d = 0; d < D; d++) {
      S[d] += kt[d] * u;
      y += S[d] * qt[d];
    }
    out[(h * length + t) * D + c] = y;
  }
}
