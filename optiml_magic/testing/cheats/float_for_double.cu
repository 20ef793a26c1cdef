// Computes in float what is asked for in double.
// task: quadratic64
// row: 7
// rejected: wrong: ulp
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const double* x, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = (float)x[i];  //-
    double y = x[i];  //+
    out[i] = y + y * y;
}
