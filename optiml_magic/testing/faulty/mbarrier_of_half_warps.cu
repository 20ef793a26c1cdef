// The halves of a warp arrive in branches of their own; one of them does not wait.
// launch: swap grid=1 block=32 args=a,o
// data: a=in:f4[32] o=out:f4[32]
// sanitizer: racecheck
#include <cuda/barrier>
__global__ void swap(const float* a, float* o) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float s[32];
    int t = threadIdx.x;
    if (t == 0) init(&bar, 32);
    __syncthreads();
    if (t < 16) {
        s[t] = a[t] + 1.0f;  //! race
        bar.arrive_and_wait();
        o[t] = s[t + 16];
    } else {
        s[t] = a[t] - 1.0f;
        (void)bar.arrive();  //-
        bar.arrive_and_wait();  //+
        o[t] = s[t - 16];  //! race
    }
}
