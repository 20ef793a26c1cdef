// A tenth more blocks than fit at once; the other launches what fits.
// task: series_tail
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)  //-!
#pragma optiml launch k grid(sm_count * 4) block(256)  //+
__global__ void k(const float* x, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = x[i], y = 0.0f;
        for (int j = 0; j < 4096; ++j) y = y * v + 0.5f;
        out[i] = y;
    }
}
