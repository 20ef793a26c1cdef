// A private table of which only the even places are set.
// launch: lookup grid=1 block=64 args=x,out
// data: x=in:i4[64]%8 out=out:i4[64]
__global__ void lookup(const int* x, int* out) {
    int table[8];
    for (int k = 0; k < 8; k += 2) table[k] = x[k] + k;      //-
    for (int k = 0; k < 8; ++k) table[k] = x[k] + k;         //+
    int v = table[x[threadIdx.x]];  //! uninitialised
    out[threadIdx.x] = v;
}
