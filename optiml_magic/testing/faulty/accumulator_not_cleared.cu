// The output is added to, though nobody set it to zero.
// sanitizer: initcheck
// launch: add grid=4 block=64 args=x,out
// data: x=in:f4[256] out=out:f4[64]
__global__ void add(const float* x, float* out) {
    if (blockIdx.x > 0) return;
    float total = 0.0f;                  //+
    float total = out[threadIdx.x];      //- //! uninitialised
    for (int b = 0; b < 4; ++b) total += x[b * 64 + threadIdx.x];
    out[threadIdx.x] = total;
}
