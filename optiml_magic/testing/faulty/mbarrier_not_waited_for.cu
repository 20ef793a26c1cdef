// Lanes of one warp arrive at a barrier and do not wait for each other.
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
    s[t] = a[t];  //! race
    (void)bar.arrive();  //-
    bar.arrive_and_wait();  //+
    o[t] = s[t ^ 1];  //! race
}
