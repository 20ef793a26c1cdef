#pragma optiml zero(out)
#pragma optiml launch dot grid(cdiv(n, 256)) block(256)
__global__ void dot(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(out, x[i] * y[i]);
    }
}
