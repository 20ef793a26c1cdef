#pragma optiml launch map_square grid(cdiv(n, 64)) block(64)
__global__ void map_square(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float value = x[i];
        out[i] = value * value + 1.0f;
    }
}
