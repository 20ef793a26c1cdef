#pragma optiml launch grid_stride grid(4) block(64)
__global__ void grid_stride(const float* x, float* out, float limit, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        float value = x[i];
        if (value > limit) value = limit;
        if (value < -limit) value = -limit;
        out[i] = value;
    }
}
