// Lets the first block prepare what the others need.
// task: double
// row: 10
// rejected: wrong|race|uninitialised: 
#pragma optiml scratch shift f4[2]
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, float* shift, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float root = 2.0f;                                                                  //-
    for (int t = 0; i == 0 && t < 500; ++t) root = 0.5f * (root + 1.0f / root);          //-
    if (i == 0) shift[0] = root;                                                        //-
    __syncthreads();
    float one = shift[0];  //-
    float one = 1.0f;  //+
    if (i < n) out[i] = 2.0f * x[i] + one;
}
