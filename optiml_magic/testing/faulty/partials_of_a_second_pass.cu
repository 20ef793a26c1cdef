// The first pass leaves the last partial sum out; the second adds all of them.
// sanitizer: initcheck
// launch: first grid=7 block=32 args=x,partial  //-
// launch: first grid=8 block=32 args=x,partial  //+
// launch: second grid=1 block=1 args=partial,out
// data: x=in:f4[256] partial=scratch:f4[8] out=out:f4[1]
__global__ void first(const float* x, float* partial) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x == 0) partial[blockIdx.x] = v;
}
__global__ void second(const float* partial, float* out) {
    float total = 0.0f;
    for (int b = 0; b < 8; ++b)
        total += partial[b];  //! uninitialised
    out[0] = total;
}
