// All arrive for the second phase though nobody has seen the first one over.
// launch: count grid=1 block=64 args=a,o
// data: a=in:f4[64] o=out:f4[64]
// sanitizer: synccheck
#include <cuda/barrier>
__global__ void count(const float* a, float* o) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
    s[t] = a[t];
    (void)bar.arrive();  //-
    bar.arrive_and_wait();  //+
    __syncthreads();
    float v = s[63 - t];
    (void)bar.arrive();  //! missed_phase
    __syncthreads();
    o[t] = v;
}
