// A block's copies overwrite a stage that others have not released.
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
    float total = 0.0f;
    for (int k = 0, ahead = 0; k < n; ++k) {
        for (; ahead < n && ahead < k + 2; ++ahead) {
            pipe.producer_acquire();  //+
            cuda::memcpy_async(block, s[ahead % 2], x + ahead * 64, sizeof(float) * 64, pipe);  //! race
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        total += s[k % 2][63 - threadIdx.x];  //! race
        pipe.consumer_release();  //! missed_phase
    }
    out[threadIdx.x] = total;
}
