#define HALF 256

// a block a signal of 512 numbers; out has the last average, then details from coarse to fine
#pragma optiml launch haar grid(signals) block(256)
__global__ void haar(const float* x, float* out, int signals) {
    __shared__ float average[2 * HALF];
    int t = threadIdx.x;
    int first = blockIdx.x * 2 * HALF;
    average[t] = x[first + t];
    average[t + HALF] = x[first + t + HALF];
    __syncthreads();
    for (int active = HALF; active > 0; active /= 2) {
        float a = 0.0f, b = 0.0f;
        if (t < active) {
            a = average[2 * t];
            b = average[2 * t + 1];
        }
        __syncthreads();
        if (t < active) {
            average[t] = (a + b) * 0.70710678f;
            out[first + active + t] = (a - b) * 0.70710678f;
        }
        __syncthreads();
    }
    if (t == 0) out[first] = average[0];
}
