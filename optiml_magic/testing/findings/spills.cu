// More values than the registers of a thread hold, if 1024 threads are to share them.
// task: weighted
// devices: emulated cuda
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void __launch_bounds__(1024) k(const float* x, float* out, int n) {  //-
__global__ void __launch_bounds__(128) k(const float* x, float* out, int n) {   //+
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[112], sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 112; ++j)
        v[j] = x[j * n + i];  //!
#pragma unroll
    for (int j = 0; j < 112; ++j)
        sum += v[j];
#pragma unroll
    for (int j = 0; j < 112; ++j)
        out[j * n + i] = v[j] * sum;
}
