// What is owed by each counterparty, and the number of trades with it.
#pragma optiml launch exposures grid(cdiv(parties, 128)) block(128)
__global__ void exposures(const int* party, const float* value, float* owed, int* trades, int n, int parties) {
  int mine = blockIdx.x * blockDim.x + threadIdx.x;
  if (mine >= parties) return;
  float sum = 0;
  int number = 0;
  for (int t = n - 1; t >= 0; t--) {
    if (party[t] == mine && value[t] > 0.0f) {
      sum += value[t];
      number++;
    }
  }
  owed[mine] = sum;
  trades[mine] = number;
}
