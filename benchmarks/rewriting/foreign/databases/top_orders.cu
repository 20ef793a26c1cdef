// The five largest orders of each customer; customers' orders lie one behind the other.
#define TOP 5
__global__ void top_orders(const int *first, const float *amount, float *best, int *which, int customers) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= customers) return;
  float kept[TOP];
  int row[TOP];
  for (int k = 0; k < TOP; k++) {
    kept[k] = -1.0f;
    row[k] = -1;
  }
  for (int i = first[c]; i < first[c + 1]; i++) {
    float value = amount[i];
    if (value > kept[TOP - 1]) {
      int k = TOP - 1;
      while (k > 0 && kept[k - 1] < value) {
        kept[k] = kept[k - 1];
        row[k] = row[k - 1];
        k--;
      }
      kept[k] = value;
      row[k] = i;
    }
  }
  for (int k = 0; k < TOP; k++) {
    best[c * TOP + k] = kept[k];
    which[c * TOP + k] = row[k];
  }
}
#pragma optiml launch top_orders grid(cdiv(customers, 128)) block(128)
