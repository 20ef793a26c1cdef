// The consumer waits for the phase before the first, which is over from the start.
// launch: hand_over grid=1 block=64 args=a,o
// data: a=in:f4[32] o=out:f4[32]
// sanitizer: racecheck
#include <cuda/barrier>
__global__ void hand_over(const float* a, float* o) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float s[32];
    int t = threadIdx.x;
    if (t == 0) init(&bar, 32);
    __syncthreads();
    if (t < 32) {
        bar.wait_parity(true);  //-
        bar.wait_parity(false);  //+
        o[t] = s[31 - t];  //! race
    } else {
        s[t - 32] = a[t - 32];  //! race
        (void)bar.arrive();
    }
}
