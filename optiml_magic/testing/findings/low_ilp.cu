// One chain of dependent products in few warps; the other has four chains.
// task: series_few
// devices: emulated cuda
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    float y = 0.0f;                       //-
    for (int j = 0; j < 2048; ++j)        //-
        y = y * v + 0.5f;                 //-!
    float w = v * v * v * v, a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;  //+
    for (int j = 0; j < 512; ++j) {       //+
        a = a * w + 0.5f;                 //+
        b = b * w + 0.5f;                 //+
        c = c * w + 0.5f;                 //+
        d = d * w + 0.5f;                 //+
    }                                     //+
    float y = a + v * (b + v * (c + v * d));  //+
    out[i] = y;
}
