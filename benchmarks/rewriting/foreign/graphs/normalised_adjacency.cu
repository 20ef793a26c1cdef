// Rows of a dense affinity matrix divided by their sums (random walk), the sum in a launch of its own.
#pragma optiml scratch degree float[n]
#pragma optiml launch degrees grid(cdiv(n, 128)) block(128)
#pragma optiml launch transition grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)
__global__ void degrees(const float* affinity, float* degree, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < n; j++) sum += affinity[i * n + j];
  degree[i] = sum;
}
__global__ void transition(const float* affinity, const float* degree, float* walk, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n) return;
  walk[i * n + j] = affinity[i * n + j] / degree[i];
}
