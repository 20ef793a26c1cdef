// A lookup through a pointer that was never set.
// sanitizer: memcheck
// launch: fetch grid=1 block=32 args=table,out
// data: table=i8:0 out=out:f4[32]             //-
// data: table=in:f4[32] out=out:f4[32]        //+
__global__ void fetch(const float* table, float* out) {
    out[threadIdx.x] = table[threadIdx.x];  //! out_of_bounds
}
