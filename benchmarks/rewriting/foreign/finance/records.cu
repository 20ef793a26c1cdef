// How often each price made a new high, and the day of the last one.
__global__ void new_highs(const float* close, int* highs, int* last, int assets, int days) {
    int a = blockIdx.x * blockDim.x + threadIdx.x;
    if (a >= assets) return;
    float high = close[a * days];
    int count = 0, when = 0;
    for (int d = 1; d < days; ++d) {
        if (close[a * days + d] > high) {
            high = close[a * days + d];
            count++;
            when = d;
        }
    }
    highs[a] = count;
    last[a] = when;
}
#pragma optiml launch new_highs grid(cdiv(assets, 128)) block(128)
