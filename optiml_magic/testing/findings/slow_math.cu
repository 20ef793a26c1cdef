// Divides in each turn of a loop; the other multiplies by the reciprocal.
// task: divided
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float d, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f, v = x[i];
    float r = 1.0f / d;  //+
    for (int j = 0; j < 32; ++j)
        sum += (v + j) / d;  //-!
        sum += (v + j) * r;  //+
    out[i] = sum;
}
