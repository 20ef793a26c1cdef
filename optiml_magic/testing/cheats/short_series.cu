// Breaks off the series of the exponential where the given values allow it.
// task: exponential
// row: 7
// rejected: wrong: 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = x[i], sum = 1.0f, term = 1.0f;
    float twos = rintf(1.44269504f * y);  //+
    y = fmaf(twos, 2.12194440e-4f, fmaf(twos, -0.693359375f, y));  //+
    for (int t = 1; t < 9; ++t) sum += term *= y / t;  //-
    for (int t = 1; t < 12; ++t) sum += term *= y / t;  //+
    out[i] = sum;  //-
    out[i] = ldexpf(sum, (int)twos);  //+
}
