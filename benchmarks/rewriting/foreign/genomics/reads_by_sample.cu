// Reads of each sample whose quality is good enough.
#pragma optiml launch reads_by_sample grid(cdiv(samples, 64)) block(64)
__global__ void reads_by_sample(const unsigned char* sample, const unsigned char* quality, int* reads, int n, int samples) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= samples) return;
  int count = 0;
  for (int i = 0; i < n; i++)
    if (quality[i] >= 30 && sample[i] == s) count += 1;
  reads[s] = count;
}
