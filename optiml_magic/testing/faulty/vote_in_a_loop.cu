// Lanes leave the loop one after the other; the vote still waits for all of them.
// launch: count grid=1 block=32 args=x,out
// data: x=in:i4[32]%9 out=out:i4[32]
__global__ void count(const int* x, int* out) {
    int left = x[threadIdx.x], rounds = 0;
    while (left > 0) {                                       //-
    while (__any_sync(0xffffffff, left > 0)) {               //+
        rounds += __popc(__ballot_sync(0xffffffff, left & 1));  //! invalid_lane
        --left;
    }
    out[threadIdx.x] = rounds;
}
