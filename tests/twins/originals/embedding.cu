#pragma optiml launch embedding grid(cdiv(width, 32), tokens) block(32)
__global__ void embedding(const float* table, const int* ids, float* out, int tokens, int width,
                          int vocabulary) {
    int token = blockIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= tokens || col >= width) return;
    int id = ids[token];
    out[token * width + col] = id < vocabulary ? table[id * width + col] : 0.0f;
}
