// A block that is no power of two: the first step reads partners that do not exist.
// launch: sum grid=1 block=96 args=x,out
// data: x=in:f4[96] out=out:f4[1]
__global__ void sum(const float* x, float* out) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 32) s[t + 96] = 0.0f;  //+
    __syncthreads();
    for (int d = 64; d > 0; d /= 2) {
        if (t < d) {
            float other = s[t + d];  //! uninitialised
            s[t] += other;
        }
        __syncthreads();
    }
    if (t == 0) out[0] = s[0];
}
