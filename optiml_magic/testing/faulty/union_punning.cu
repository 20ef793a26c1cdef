// A union is read as the wider member; only the narrower one was written.
// launch: pun grid=1 block=32 args=x,out
// data: x=in:i4[32] out=out:i8[32]
union Cell { int narrow; long long wide; };
__global__ void pun(const int* x, long long* out) {
    __shared__ Cell cells[32];
    int t = threadIdx.x;
    cells[t].narrow = x[t];      //-
    cells[t].wide = x[t];        //+
    __syncthreads();
    long long v = cells[31 - t].wide;  //! uninitialised
    out[t] = v;
}
