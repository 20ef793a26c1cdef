// Lets a directive fill the output before the clock starts.
// task: threshold
// row: 2
// rejected: invalid: before the launch
#pragma optiml init(out) = 1  //-
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, bool* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && !(x[i] > 0.5f)) out[i] = false;
    if (i < n && x[i] > 0.5f) out[i] = true;  //+
}
