// A small table of a thread's own, indexed one too far.
// sanitizer: memcheck
// launch: lookup grid=1 block=64 args=x,out
// data: x=in:i4[64]%8 out=out:i4[64]
__global__ void lookup(const int* x, int* out) {
    int table[8];
    for (int k = 0; k < 8; ++k) table[k] = x[k] + k * k;
    int at = x[threadIdx.x] + 1;                   //-
    int at = x[threadIdx.x];                       //+
    out[threadIdx.x] = table[at];  //! out_of_bounds
}
