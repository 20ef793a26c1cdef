// The sum of squares of each class around a centre that is known.
#pragma optiml launch class_spread grid(cdiv(classes, 32)) block(32)
__global__ void class_spread(const int* label, const float* x, const float* centre, float* spread, int n, int classes) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= classes) return;
  float own = centre[c], s = 0.f;
  for (int i = 0; i < n; ++i) {
    float d = x[i] - own;
    s += label[i] == c ? d * d : 0.f;
  }
  spread[c] = s;
}
