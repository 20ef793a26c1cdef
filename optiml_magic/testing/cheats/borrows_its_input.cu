// Uses its input as scratch memory, right answer or not.
// task: double
// row: 5
// rejected: input_modified: x
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = 2.0f * x[i] + 1.0f;
    ((float*)x)[i] = y;  //-
    out[i] = y;
}
