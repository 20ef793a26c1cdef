// An atomic sum into memory that nobody cleared.
// sanitizer: initcheck
// launch: total grid=2 block=64 args=x,out
// data: x=in:i4[128] out=out:i4[1]   //-
// data: x=in:i4[128] out=zero:i4[1]  //+
__global__ void total(const int* x, int* out) {
    atomicAdd(out, x[blockIdx.x * 64 + threadIdx.x]);  //! uninitialised
}
