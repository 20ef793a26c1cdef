// Each half of the warp should name itself; both name the lower one.
// launch: sum grid=1 block=32 args=x,out
// data: x=in:i4[32] out=out:i4[2]
__global__ void sum(const int* x, int* out) {
    int lane = threadIdx.x, v = x[lane];
    unsigned mask = 0x0000ffff;                              //-
    unsigned mask = lane < 16 ? 0x0000ffff : 0xffff0000;     //+
    for (int d = 8; d > 0; d /= 2)
        v += __shfl_xor_sync(mask, v, d);  //! invalid_lane
    if (lane % 16 == 0) out[lane / 16] = v;
}
