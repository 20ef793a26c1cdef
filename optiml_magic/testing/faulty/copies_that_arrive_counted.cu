// Copies that arrive at a barrier, beside which each thread arrives, read before it was waited for.
// launch: sums grid=1 block=64 args=x,out,n
// data: x=in:f4[256] out=out:f4[64] n=i4:4
// sanitizer: racecheck
#include <cuda_pipeline.h>
typedef unsigned long long Bar;
__device__ unsigned at(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void arrive(Bar* b) {
    Bar state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at(b)) : "memory");
}
__device__ void wait(Bar* b, int parity) {
    int over;
    do asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
                    "selp.s32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(b)), "r"(parity) : "memory");
    while (!over);
}
__global__ void sums(const float* x, float* out, int n) {
    __shared__ Bar bar;
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at(&bar)) : "memory");
    __syncthreads();
    float total = 0.0f;
    for (int k = 0; k < n; ++k) {
        __pipeline_memcpy_async(&s[t], &x[k * 64 + t], 4);  //! race
        asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(at(&bar)) : "memory");
        arrive(&bar);
        wait(&bar, k & 1);  //+
        total += s[63 - t];  //! race
        wait(&bar, k & 1);  //-
        __syncthreads();
    }
    out[t] = total;
}
