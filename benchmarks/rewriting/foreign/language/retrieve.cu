// The passage for each question, by embeddings of eight bits and their scales.
#pragma optiml launch retrieve grid(cdiv(questions, 128)) block(128)
__global__ void retrieve(const signed char* question, const signed char* passage, const float* scale,
                         int* found, float* score, int questions, int passages, int width)
{
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= questions) return;
    const signed char* mine = question + q * width;
    float top = -1e30f;
    int at = 0;
    for (int p = 0; p < passages; p++) {
        const signed char* theirs = passage + p * width;
        int dot = 0;
        for (int i = 0; i < width; i++)
            dot += mine[i] * theirs[i];
        float s = dot * scale[p];
        if (s > top) { top = s; at = p; }
    }
    found[q] = at;
    score[q] = top;
}
