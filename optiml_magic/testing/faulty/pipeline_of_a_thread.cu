// Each thread waits for its own copies alone, and reads those of others.
// launch: sums grid=1 block=64 args=x,out,n
// data: x=in:f4[512] out=out:f4[64] n=i4:8
// sanitizer: racecheck
#include <cuda/pipeline>
__global__ void sums(const float* x, float* out, int n) {
    __shared__ float s[2][64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;
    float total = 0.0f;
    for (int k = 0, ahead = 0; k < n; ++k) {
        for (; ahead < n && ahead < k + 2; ++ahead) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[ahead % 2][t], &x[ahead * 64 + t], sizeof(float), pipe);  //! race
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();  //+
        total += s[k % 2][63 - t];  //! race
        __syncthreads();
        pipe.consumer_release();
    }
    out[t] = total;
}
