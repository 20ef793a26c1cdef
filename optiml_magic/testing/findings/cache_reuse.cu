// Each element is read by two threads that are half a grid apart.
// task: far_sum
// devices: emulated cuda
// chip: t4
#pragma optiml require n % 2 == 0
#pragma optiml launch k grid(cdiv(n, 256)) block(256)      //-
#pragma optiml launch k grid(cdiv(n / 2, 256)) block(256)  //+
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int half = n / 2;
    if (i >= n) return;                                        //-
    out[i] = x[i] + x[i < half ? i + half : i - half];         //-!
    if (i >= half) return;                                     //+
    float sum = x[i] + x[i + half];                            //+
    out[i] = sum;                                              //+
    out[i + half] = sum;                                       //+
}
