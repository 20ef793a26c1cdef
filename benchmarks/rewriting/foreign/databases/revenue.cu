// SELECT price * (1 - discount) WHERE shipped BETWEEN lo AND hi AND quantity < most
#pragma optiml launch revenue grid(cdiv(rows, 256)) block(256)
__global__ void revenue(const float *price, const float *discount, const int *shipped, const unsigned char *quantity,
                        float *out, int lo, int hi, int most, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    int day = shipped[r];
    bool taken = day >= lo && day <= hi && quantity[r] < most;
    out[r] = taken ? price[r] * (1.0f - discount[r]) : 0.0f;
  }
}
