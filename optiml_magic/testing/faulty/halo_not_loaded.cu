// A stencil through shared memory whose right halo nobody loads.
// launch: blur grid=2 block=128 args=x,out,n
// data: x=in:f4[256] out=out:f4[256] n=i4:256
__global__ void blur(const float* x, float* out, int n) {
    __shared__ float s[130];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t + 1] = x[i];
    if (t == 0) s[0] = i > 0 ? x[i - 1] : 0.0f;
    if (t == 127) s[129] = i + 1 < n ? x[i + 1] : 0.0f;  //+
    __syncthreads();
    float right =
        s[t + 2];  //! uninitialised
    out[i] = s[t] + s[t + 1] + right;
}
