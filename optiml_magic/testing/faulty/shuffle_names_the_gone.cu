// A full mask where half of the warp has nothing left to do: legal once those lanes have exited.
// launch: pick grid=1 block=32 args=x,out
// data: x=in:i4[32] out=out:i4[32]
__global__ void pick(const int* x, int* out) {
    int v = x[threadIdx.x];
    if (threadIdx.x < 16) v += __shfl_xor_sync(0xffffffff, v, 1);  //- //! exited_lanes
    if (threadIdx.x < 16) v += __shfl_xor_sync(0x0000ffff, v, 1);  //+
    out[threadIdx.x] = v;
}
