// Answers a question of yes or no with two.
// task: threshold
// row: 13
// rejected: wrong: 
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, bool* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    *(unsigned char*)(out + i) = x[i] > 0.5f ? 2 : 0;  //-
    *(unsigned char*)(out + i) = x[i] > 0.5f ? 1 : 0;  //+
}
