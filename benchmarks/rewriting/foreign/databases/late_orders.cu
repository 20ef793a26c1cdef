// How many orders of each shop came later than promised.
#pragma optiml launch late_orders grid((shops + 127) / 128) block(128)
__global__ void late_orders(const int *shop, const int *promised, const int *delivered, int *late, int n, int shops) {
  const int s = threadIdx.x + blockIdx.x * blockDim.x;
  if (s < shops) {
    int found = 0;
    for (int o = 0; o < n; ++o) {
      if (shop[o] != s) continue;
      if (delivered[o] > promised[o]) ++found;
    }
    late[s] = found;
  }
}
