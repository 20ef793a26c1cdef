// The Adamic-Adar weight of each pair: one over the logarithm of the degree of every shared neighbour.
#pragma optiml launch link_weight grid(cdiv(pairs, 256)) block(256)
__global__ void link_weight(const int* row_ptr, const int* col, const float* rarity, const int* one,
                            const int* other, float* weight, int pairs) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < pairs) {
    int a = one[p], b = other[p];
    int begin = row_ptr[b], end = row_ptr[b + 1] - 1;
    float sum = 0.0f;
    for (int k = row_ptr[a]; k < row_ptr[a + 1]; ++k) {
      int node = col[k];
      int lo = begin, hi = end;
      while (lo <= hi) {
        int mid = (lo + hi) >> 1;
        if (col[mid] == node) {
          sum += rarity[node];
          break;
        } else if (col[mid] > node) {
          hi = mid - 1;
        } else {
          lo = mid + 1;
        }
      }
    }
    weight[p] = sum;
  }
}
