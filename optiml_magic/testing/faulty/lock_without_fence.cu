// A lock orders its owners only if fences stand on both sides of the section.
// launch: append grid=4 block=32 args=x,total,lock
// data: x=in:i4[128] total=zero:i4[1] lock=zero:i4[1]
__global__ void append(const int* x, int* total, int* lock) {
    int v = __reduce_add_sync(0xffffffff, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();  //+
        *total += v;  //! race
        __threadfence();  //+
        atomicExch(lock, 0);
    }
}
