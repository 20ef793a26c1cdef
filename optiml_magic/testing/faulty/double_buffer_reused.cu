// Two buffers and four warps: the next copy goes where a slower warp still reads.
// launch: sums grid=1 block=128 args=x,out,n
// data: x=in:f4[1024] out=out:f4[128] n=i4:8
// sanitizer: racecheck
#include <cuda_pipeline.h>
__global__ void sums(const float* x, float* out, int n) {
    __shared__ float s[2][128];
    int t = threadIdx.x;
    float total = 0.0f;
    __pipeline_memcpy_async(&s[0][t], &x[t], 4);
    __pipeline_commit();
    for (int k = 0; k < n; ++k) {
        if (k + 1 < n) {
            __pipeline_memcpy_async(&s[(k + 1) % 2][t], &x[(k + 1) * 128 + t], 4);  //! race
            __pipeline_commit();
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        total += s[k % 2][127 - t];  //! race
        __syncthreads();  //+
    }
    out[t] = total;
}
