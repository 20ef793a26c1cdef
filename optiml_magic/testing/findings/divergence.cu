// Odd lanes and even lanes go different ways; in the other whole warps do.
// task: ways
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int i = t;                                      //-
    int half = n / 2;                               //+
    int i = t < half ? 2 * t : 2 * (t - half) + 1;  //+
    float y = x[i];
    if (i % 2 == 0) {
        for (int j = 0; j < 64; ++j)
            y = 0.5f * y * y + 0.1f;  //!
    } else {
        for (int j = 0; j < 64; ++j) y = 0.75f * y + 0.25f;
    }
    out[i] = y;
}
