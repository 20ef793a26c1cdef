// Sum of a block whose last warp works without barriers, as one did before Volta.
// sanitizer: racecheck
// launch: reduce grid=2 block=128 args=x,out
// data: x=in:f4[256] out=out:f4[2]
__global__ void reduce(const float* x, float* out) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];                                           //+
        __syncwarp();                                                //+
        for (int d = 16; d > 0; d /= 2) {                            //+
            float v = s[t] + s[t + d];                               //+
            __syncwarp();                                            //+
            s[t] = v;                                                //+
            __syncwarp();                                            //+
        }                                                            //+
        for (int d = 32; d > 0; d /= 2) s[t] += s[t + d];  //- //! race
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
