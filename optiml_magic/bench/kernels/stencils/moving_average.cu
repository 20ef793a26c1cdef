#define RADIUS 8

#pragma optiml launch moving_average grid(cdiv(n, 256)) block(256)
__global__ void moving_average(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            int j = i + k;
            if (j >= 0 && j < n) sum += x[j];
        }
        out[i] = sum / (2 * RADIUS + 1);
    }
}
