// The mask is right, but lanes read from beyond it: what they get is undefined.
// launch: sum grid=1 block=32 args=x,out,n
// data: x=in:f4[20] out=out:f4[1] n=i4:20
__global__ void sum(const float* x, float* out, int n) {
    unsigned mask = __ballot_sync(0xffffffff, threadIdx.x < n);
    float v = threadIdx.x < n ? x[threadIdx.x] : 0.0f;
    if (threadIdx.x < n)                               //-
        for (int d = 16; d > 0; d /= 2)                //-
            v += __shfl_down_sync(mask, v, d);         //- //! invalid_lane
    for (int d = 16; d > 0; d /= 2)                    //+
        v += __shfl_down_sync(0xffffffff, v, d);       //+
    if (threadIdx.x == 0 && mask) out[0] = v;
}
