// Two stages of asynchronous copies: the wait leaves one group open, and it is the one that is used.
// launch: sums grid=1 block=32 args=x,out,n
// data: x=in:f4[256] out=out:f4[32] n=i4:8
#include <cuda_pipeline.h>
__global__ void sums(const float* x, float* out, int n) {
    __shared__ float s[2][32];
    int t = threadIdx.x;
    float total = 0.0f;
    __pipeline_memcpy_async(&s[0][t], &x[t], 4);  //! race
    __pipeline_commit();
    for (int k = 0; k < n; ++k) {
        if (k + 1 < n) __pipeline_memcpy_async(&s[(k + 1) % 2][t], &x[(k + 1) * 32 + t], 4);  //! race
        __pipeline_commit();
        __pipeline_wait_prior(2);  //-
        __pipeline_wait_prior(1);  //+
        __syncthreads();
        total += s[k % 2][31 - t];  //! race
        __syncthreads();
    }
    out[t] = total;
}
