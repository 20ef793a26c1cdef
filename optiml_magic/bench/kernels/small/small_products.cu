#pragma optiml launch small_products grid(cdiv(count, 256)) block(256)
__global__ void small_products(const float* a, const float* b, float* c, int count) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < count) {
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++) {
                float sum = 0.0f;
                for (int k = 0; k < 4; k++) {
                    sum += a[id * 16 + i * 4 + k] * b[id * 16 + k * 4 + j];
                }
                c[id * 16 + i * 4 + j] = sum;
            }
        }
    }
}
