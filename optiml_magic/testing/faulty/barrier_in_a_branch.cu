// Half of a warp waits for the other half, which never comes.
// sanitizer: synccheck
// launch: flip grid=1 block=32 args=x,out
// data: x=in:f4[32] out=out:f4[32]
__global__ void flip(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = x[t];
        __syncthreads();  //- //! barrier_divergence
        out[31 - t] = s[t];
    } else {
        out[31 - t] = x[t];
    }
    __syncthreads();
    out[t] *= 2.0f;
}
