#pragma optiml scratch mean f4[cols]
#pragma optiml scratch deviation f4[cols]
#pragma optiml launch means grid(cdiv(cols, 256)) block(256)
#pragma optiml launch deviations grid(cdiv(cols, 256)) block(256)
#pragma optiml launch apply grid(cdiv(cols, 16), cdiv(rows, 16)) block(16, 16)
__global__ void means(const float* x, float* mean, int rows, int cols) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < cols) {
        float sum = 0.0f;
        for (int i = 0; i < rows; i++) sum += x[i * cols + j];
        mean[j] = sum / rows;
    }
}

__global__ void deviations(const float* x, const float* mean, float* deviation, int rows, int cols) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < cols) {
        float sum = 0.0f;
        for (int i = 0; i < rows; i++) {
            float d = x[i * cols + j] - mean[j];
            sum += d * d;
        }
        deviation[j] = sqrtf(sum / rows);
    }
}

__global__ void apply(const float* x, const float* mean, const float* deviation, float* out,
                      int rows, int cols) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < rows && j < cols) {
        out[i * cols + j] = (x[i * cols + j] - mean[j]) / deviation[j];
    }
}
