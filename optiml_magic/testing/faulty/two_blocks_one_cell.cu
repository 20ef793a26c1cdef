// Each pair of blocks writes its result to one cell.
// launch: sums grid=4 block=32 args=x,out
// data: x=in:f4[128] out=out:f4[4]
__global__ void sums(const float* x, float* out) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x == 0) out[blockIdx.x / 2] = v;  //- //! race
    if (threadIdx.x == 0) out[blockIdx.x] = v;      //+
}
