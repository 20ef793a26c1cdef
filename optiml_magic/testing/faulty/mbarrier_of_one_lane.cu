// One lane arrives for its whole warp: what the others wrote is not released by it.
// launch: swap grid=1 block=32 args=a,o
// data: a=in:f4[32] o=out:f4[32]
// sanitizer: racecheck
#include <cuda/barrier>
__global__ void swap(const float* a, float* o) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float s[32];
    int t = threadIdx.x;
    if (t == 0) init(&bar, 1);
    __syncthreads();
    s[t] = a[t];  //! race
    __syncwarp();  //+
    if (t == 0) (void)bar.arrive();
    bar.wait_parity(false);
    o[t] = s[t ^ 1];  //! race
}
