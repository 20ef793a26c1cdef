// The phase is tested once, and the answer thrown away: half of the arrivals are missing.
// launch: hand_over grid=1 block=64 args=a,o
// data: a=in:f4[32] o=out:f4[32]
// sanitizer: racecheck
#include <cuda/barrier>
#include <cuda/ptx>
__global__ void hand_over(const float* a, float* o) {
    __shared__ cuda::std::uint64_t bar;
    __shared__ float s[32];
    int t = threadIdx.x;
    if (t == 0) cuda::ptx::mbarrier_init(&bar, 64);
    __syncthreads();
    if (t < 32) s[t] = a[t];  //! race
    auto token = cuda::ptx::mbarrier_arrive(&bar);
    cuda::ptx::mbarrier_test_wait(&bar, token);  //-
    while (!cuda::ptx::mbarrier_test_wait(&bar, token)) {}  //+
    if (t < 32) o[t] = s[t ^ 1];  //! race
}
