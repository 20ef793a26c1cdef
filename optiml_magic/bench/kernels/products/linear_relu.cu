#pragma optiml launch linear_relu grid(cdiv(batch, 16), cdiv(features, 16)) block(16, 16)
__global__ void linear_relu(const float* x, const float* weight, const float* bias, float* out,
                            int batch, int features, int inputs) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    int f = blockIdx.y * blockDim.y + threadIdx.y;
    if (b < batch && f < features) {
        float value = bias[f];
        for (int i = 0; i < inputs; i++) {
            value += x[b * inputs + i] * weight[f * inputs + i];
        }
        out[b * features + f] = value > 0.0f ? value : 0.0f;
    }
}
