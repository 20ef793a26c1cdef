// A full mask where half of the warp does not take part: those lanes may be anywhere.
// launch: pick grid=1 block=32 args=x,out
// data: x=in:i4[32] out=out:i4[32]
__global__ void pick(const int* x, int* out) {
    int v = x[threadIdx.x];
    if (threadIdx.x < 16) v += __shfl_xor_sync(0xffffffff, v, 1);  //- //! invalid_lane
    if (threadIdx.x < 16) v += __shfl_xor_sync(0x0000ffff, v, 1);  //+
    out[threadIdx.x] = v;
}
