// Half of a warp goes around the only barrier; nobody comes to another.
// launch: shift grid=1 block=32 args=x,out
// data: x=in:f4[32] out=out:f4[32]
__global__ void shift(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    float v = x[t];
    s[t] = v;
    if (t < 16)  //-
        __syncthreads();  //! barrier_divergence
    if (t < 16)  //+
        v += s[(t + 1) % 16];
    out[t] = v;
}
