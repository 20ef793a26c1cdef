// Two buffers for a row whose end is no multiple of the block; one barrier stands in the guard.
// launch: sums grid=1 block=128 args=x,out,w,n
// data: x=in:f4[800] out=out:f4[128] w=i4:100 n=i4:8
// sanitizer: synccheck
#include <cuda_pipeline.h>
__global__ void sums(const float* x, float* out, int w, int n) {
    __shared__ float s[2][128];
    int t = threadIdx.x;
    float total = 0.0f;
    s[0][t] = s[1][t] = 0.0f;
    if (t < w) __pipeline_memcpy_async(&s[0][t], &x[t], 4);
    __pipeline_commit();
    for (int k = 0; k < n; ++k) {
        if (t < w && k + 1 < n) __pipeline_memcpy_async(&s[(k + 1) % 2][t], &x[(k + 1) * w + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        if (t < w) __syncthreads();  //- //! barrier_divergence
        __syncthreads();  //+
        total += s[k % 2][127 - t];
        __syncthreads();
    }
    out[t] = total;
}
