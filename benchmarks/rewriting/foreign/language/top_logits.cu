// The k = 8 likeliest tokens of each row, by insertion.
#define TOPK 8
__global__ void top_logits(const float* logits, float* top, int* token, int rows, int vocab)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float best[TOPK];
    int id[TOPK];
    for (int k = 0; k < TOPK; ++k) { best[k] = -1e30f; id[k] = 0; }
    for (int v = 0; v < vocab; ++v) {
        const float x = logits[row * vocab + v];
        if (x <= best[TOPK - 1]) continue;
        int slot = TOPK - 1;
        for (; slot > 0 && best[slot - 1] < x; --slot) {
            best[slot] = best[slot - 1];
            id[slot] = id[slot - 1];
        }
        best[slot] = x;
        id[slot] = v;
    }
    for (int k = 0; k < TOPK; ++k) { top[row * TOPK + k] = best[k]; token[row * TOPK + k] = id[k]; }
}
#pragma optiml launch top_logits grid(cdiv(rows, 64)) block(64)
