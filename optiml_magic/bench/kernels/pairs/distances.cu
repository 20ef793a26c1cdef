#pragma optiml launch distances grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void distances(const float* p, const float* q, float* out, int n, int m, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) {
        float sum = 0.0f;
        for (int k = 0; k < d; k++) {
            float diff = p[i * d + k] - q[j * d + k];
            sum += diff * diff;
        }
        out[i * m + j] = sqrtf(sum);
    }
}
