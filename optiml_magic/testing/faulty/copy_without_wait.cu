// An asynchronous copy into shared memory that is read after a barrier, but never waited for.
// launch: flip grid=2 block=64 args=x,out
// data: x=in:f4[128] out=out:f4[128]
#include <cuda_pipeline.h>
__global__ void flip(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    __pipeline_memcpy_async(&s[t], &x[i], sizeof(float));  //! race
    __pipeline_commit();
    __pipeline_wait_prior(0);  //+
    __syncthreads();
    out[i] = s[63 - t];  //! race
}
