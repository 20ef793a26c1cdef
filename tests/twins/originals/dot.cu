#pragma optiml zero(out)
#pragma optiml launch dot grid(cdiv(n, 64)) block(64)
__global__ void dot(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float product = x[i] * y[i];
        atomicAdd(&out[0], product);
    }
}
