// The weight of each topic: a block for each, which looks at all tokens.
#pragma optiml launch topic_weights grid(topics) block(256)
__global__ void topic_weights(const int* topic, const float* weight, float* total, int tokens, int topics) {
  __shared__ float part[256];
  float s = 0.0f;
  for (int i = threadIdx.x; i < tokens; i += blockDim.x)
    if (topic[i] == blockIdx.x) s += weight[i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half >>= 1) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) total[blockIdx.x] = part[0];
}
