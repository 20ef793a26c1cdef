// A reservoir of eight from each stream; the uniforms are drawn before.
#define KEEP_ 8
__global__ void reservoir(const float *stream, const float *u, float *kept, int streams, int length)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= streams) return;
    float mine[KEEP_];
    for (int i = 0; i < KEEP_; ++i) mine[i] = stream[s * length + i];
    for (int i = KEEP_; i < length; ++i) {
        int j = (int)(u[s * length + i] * (i + 1));
        if (j < KEEP_) mine[j] = stream[s * length + i];
    }
    for (int i = 0; i < KEEP_; ++i) kept[s * KEEP_ + i] = mine[i];
}
#pragma optiml launch reservoir grid(cdiv(streams, 64)) block(64)
