#pragma optiml launch gather grid(cdiv(n, 64)) block(64)
__global__ void gather(const float* table, const int* indices, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int index = indices[i];
        out[i] = index >= 0 ? table[index] : 0.0f;
    }
}
