// Features of neighbours, weighed by edges that are made to sum up to one at each node.
__global__ void mean_features(const int* offsets, const int* neighbour, const float* weight, const float* feature,
                              float* out, int nodes, int width) {
  int f = blockIdx.x * blockDim.x + threadIdx.x;
  int node = blockIdx.y * blockDim.y + threadIdx.y;
  if (f >= width || node >= nodes) return;
  float norm = 0.0f;
  for (int e = offsets[node]; e < offsets[node + 1]; ++e) norm += weight[e] * weight[e];
  norm = norm > 0.0f ? rsqrtf(norm) : 0.0f;
  float sum = 0.0f;
  for (int e = offsets[node]; e < offsets[node + 1]; ++e)
    sum += norm * weight[e] * feature[neighbour[e] * width + f];
  out[node * width + f] = sum;
}
#pragma optiml launch mean_features grid(cdiv(width, 32), cdiv(nodes, 8)) block(32, 8)
