#include <cuda/atomic>

#pragma optiml zero(counter)
#pragma optiml zero(top)
#pragma optiml launch count_and_max grid(cdiv(n, 128)) block(128)
__global__ void count_and_max(const int *x, int *counter, int *top, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cuda::atomic_ref<int, cuda::thread_scope_device> count(*counter), most(*top);
    if (x[i] % 2 == 0) count.fetch_add(1, cuda::std::memory_order_relaxed);
    most.fetch_max(x[i], cuda::std::memory_order_relaxed);
}
