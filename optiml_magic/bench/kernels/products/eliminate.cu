#pragma optiml scratch m f4[size]
#pragma optiml launch fan1 grid(cdiv(size - 1 - t, 256)) block(256)
#pragma optiml launch fan2 grid(cdiv(size - 1 - t, 16), cdiv(size - t, 16)) block(16, 16)
__global__ void fan1(float* m, const float* a, int size, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size - 1 - t) return;
    m[i + t + 1] = a[size * (i + t + 1) + t] / a[size * t + t];
}

__global__ void fan2(const float* m, float* a, int size, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= size - 1 - t) return;
    if (j >= size - t) return;
    a[size * (i + 1 + t) + (j + t)] -= m[i + 1 + t] * a[size * t + (j + t)];
}
