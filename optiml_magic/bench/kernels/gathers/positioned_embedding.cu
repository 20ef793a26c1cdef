// a thread a token: out is [batch, length, width], its row that of the word plus that of the place
#pragma optiml launch positioned_embedding grid(cdiv(batch * length, 256)) block(256)
__global__ void positioned_embedding(float* out, const int* ids, const float* words,
                                     const float* places, int batch, int length, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < batch * length) {
        int place = i % length;
        int word = ids[i];
        for (int c = 0; c < width; c++) {
            out[i * width + c] = words[word * width + c] + places[place * width + c];
        }
    }
}
