// Prices along paths: a thread walks alone, its steps lie in shared memory until a warp stores them.
#define CHUNK 32
#pragma optiml launch store_paths grid(cdiv(paths, 32)) block(32)
__global__ void store_paths(const float* noise, float* price, float drift, float vol, int paths, int steps) {
    __shared__ float walked[CHUNK][CHUNK];
    int lane = threadIdx.x;
    int first = blockIdx.x * CHUNK;
    float x = 0.0f;
    for (int done = 0; done < steps; done += CHUNK) {
        for (int s = 0; s < CHUNK; ++s) {
            if (first + lane < paths && done + s < steps) x += drift + vol * noise[(done + s) * paths + first + lane];
            walked[lane][s] = x;
        }
        __syncthreads();
        for (int p = 0; p < CHUNK; ++p)
            if (first + p < paths && done + lane < steps) price[(first + p) * steps + done + lane] = expf(walked[p][lane]);
        __syncthreads();
    }
}
