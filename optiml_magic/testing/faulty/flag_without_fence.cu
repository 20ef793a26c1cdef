// A warp waits for a flag of another; without fences the data may come after the flag.
// sanitizer: racecheck
// launch: pass grid=1 block=64 args=x,out
// data: x=in:f4[32] out=out:f4[32]
__global__ void pass(const float* x, float* out) {
    __shared__ float s[32];
    __shared__ volatile int ready;
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        s[lane] = x[lane];  //! race
        __syncwarp();
        __threadfence_block();  //+
        if (lane == 0) ready = 1;
    } else {
        while (ready == 0) {}
        __threadfence_block();  //+
        out[lane] = s[31 - lane];  //! race
    }
}
