#pragma optiml scratch biased f4[rows * cols]
#pragma optiml scratch active f4[rows * cols]
#pragma optiml launch add_bias grid(cdiv(rows * cols, 256)) block(256)
#pragma optiml launch relu grid(cdiv(rows * cols, 256)) block(256)
#pragma optiml launch scale_rows grid(cdiv(rows * cols, 256)) block(256)
__global__ void add_bias(const float* x, const float* bias, float* biased, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) biased[i] = x[i] + bias[i % cols];
}

__global__ void relu(const float* biased, float* active, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) active[i] = biased[i] > 0.0f ? biased[i] : 0.0f;
}

__global__ void scale_rows(const float* active, const float* scale, float* out, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) out[i] = active[i] * scale[i / cols];
}
