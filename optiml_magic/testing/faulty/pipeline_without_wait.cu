// A stage of a block's pipeline is read before the copies into it were waited for.
// launch: sums grid=1 block=64 args=x,out,n
// data: x=in:f4[512] out=out:f4[64] n=i4:8
// sanitizer: racecheck
#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
__global__ void sums(const float* x, float* out, int n) {
    __shared__ float s[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int t = threadIdx.x;
    float total = 0.0f;
    for (int k = 0, ahead = 0; k < n; ++k) {
        for (; ahead < n && ahead < k + 2; ++ahead) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[ahead % 2][t], &x[ahead * 64 + t], sizeof(float), pipe);  //! race
            pipe.producer_commit();  //! missed_phase
        }
        pipe.consumer_wait();  //+
        total += s[k % 2][63 - t];  //! race
        pipe.consumer_release();
    }
    out[t] = total;
}
