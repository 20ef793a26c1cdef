// Two launches where one would do.
// task: scale_few
// devices: emulated cuda
#pragma optiml scratch twice f4[n]                                     //-
#pragma optiml launch doubled grid(cdiv(n, 256)) block(256)            //-
#pragma optiml launch k grid(cdiv(n, 256)) block(256)                  //-!
#pragma optiml launch k grid(cdiv(n, 256)) block(256)                  //+
__global__ void doubled(const float* x, float* twice, int n) {         //-
    int i = blockIdx.x * blockDim.x + threadIdx.x;                     //-
    if (i < n) twice[i] = 2.0f * x[i];                                 //-
}                                                                      //-
__global__ void k(const float* twice, float* out, int n) {             //-
__global__ void k(const float* x, float* out, int n) {                 //+
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = twice[i] + 1.0f;                               //-
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;                            //+
}
