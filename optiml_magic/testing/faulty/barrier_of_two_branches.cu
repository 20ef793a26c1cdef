// Two warps wait at two different barriers of the text.
// sanitizer: synccheck
// launch: halves grid=1 block=64 args=x,out
// data: x=in:f4[64] out=out:f4[64]
__global__ void halves(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = x[t];
        __syncthreads();  //- //! barrier_divergence
    } else {
        s[t] = -x[t];
        __syncthreads();  //- //! barrier_divergence
    }
    __syncthreads();  //+
    out[t] = s[63 - t];
}
