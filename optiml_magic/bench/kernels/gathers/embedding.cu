#pragma optiml launch embedding grid(cdiv(tokens * width, 256)) block(256)
__global__ void embedding(const int* ids, const float* table, float* out, int tokens, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < tokens * width) {
        int token = i / width;
        int column = i % width;
        out[i] = table[ids[token] * width + column];
    }
}
