// Reads an element before the input, and has the luck not to need it.
// task: double
// row: 9
// rejected: out_of_bounds: 
// device: emulated
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float before = x[i - 1];  //-
    float before = i ? x[i - 1] : 0.0f;  //+
    out[i] = 2.0f * x[i] + 1.0f + (i ? 0.0f * before : 0.0f);
}
