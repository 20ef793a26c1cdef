// Serves the answer from scratch that an earlier launch should have filled.
// task: double
// row: 4
// rejected: wrong: 
#pragma optiml scratch kept f4[n]
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, float* kept, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = kept[i];  //-
    kept[i] = 2.0f * x[i] + 1.0f;
    out[i] = kept[i];  //+
}
