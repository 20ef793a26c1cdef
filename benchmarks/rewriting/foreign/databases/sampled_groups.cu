// AVG over a systematic sample: each group takes every sixteenth of its rows, from a row of its own.
__global__ void sampled_groups(const float *value, const int *phase, float *mean, int groups, int size) {
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g >= groups) return;
  float sum = 0;
  int count = 0;
  for (int i = 0; i < size; i++) {
    if ((i + phase[g]) % 16 == 0) {
      sum += value[(long)g * size + i];
      count++;
    }
  }
  mean[g] = count > 0 ? sum / count : 0.0f;
}
#pragma optiml launch sampled_groups grid(cdiv(groups, 128)) block(128)
