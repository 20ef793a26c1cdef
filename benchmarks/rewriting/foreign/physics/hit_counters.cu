// Hits by layer of the detector: each thread counts its own event in a row of shared memory.
#define LAYERS 32
#define WIDTH 64
__global__ void hit_counters(const unsigned char* layer, int* counts, int events, int hits) {
    __shared__ int mine[WIDTH][LAYERS];
    int ev = blockIdx.x * WIDTH + threadIdx.x;
    for (int l = 0; l < LAYERS; ++l) mine[threadIdx.x][l] = 0;
    if (ev < events) {
        for (int h = 0; h < hits; ++h) mine[threadIdx.x][layer[h * events + ev] % LAYERS] += 1;
        for (int l = 0; l < LAYERS; ++l) counts[l * events + ev] = mine[threadIdx.x][l];
    }
}
#pragma optiml launch hit_counters grid(cdiv(events, 64)) block(64)
