// Producers and consumers wait for each other at two barriers in opposite order.
// launch: pass grid=1 block=64 args=x,out
// data: x=in:f4[32] out=out:f4[32]
__global__ void pass(const float* x, float* out) {
    __shared__ float s[32];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        s[lane] = x[lane];
        asm volatile("bar.sync 1, 64;" ::: "memory");  //! deadlock
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");  //- //! deadlock
        asm volatile("bar.sync 1, 64;" ::: "memory");  //-
        asm volatile("bar.sync 1, 64;" ::: "memory");  //+
        asm volatile("bar.sync 2, 64;" ::: "memory");  //+
        out[lane] = s[lane];
    }
}
