// Two groups of warps have a barrier each; a tile of one is read by the other.
// sanitizer: racecheck
// launch: swap grid=1 block=128 args=x,out
// data: x=in:f4[128] out=out:f4[128]
__global__ void swap(const float* x, float* out) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];  //! race
    if (t < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[t] = s[127 - t];         //- //! race
    out[t] = s[t ^ 63];          //+
}
