// volatile keeps the compiler from caching; it does not make the lanes of a warp wait.
// sanitizer: racecheck
// launch: reduce grid=1 block=64 args=x,out
// data: x=in:f4[64] out=out:f4[1]
__device__ void last_warp(volatile float* s, int t) {  //-
    s[t] += s[t + 32];  //- //! race
    s[t] += s[t + 16];  //- //! race
    s[t] += s[t + 8];   //- //! race
    s[t] += s[t + 4];   //- //! race
    s[t] += s[t + 2];   //- //! race
    s[t] += s[t + 1];   //- //! race
}                                                      //-
__device__ void last_warp(float* s, int t) {           //+
    for (int d = 32; d > 0; d /= 2) {                  //+
        float v = t + d < 64 ? s[t] + s[t + d] : s[t]; //+
        __syncwarp();                                  //+
        s[t] = v;                                      //+
        __syncwarp();                                  //+
    }                                                  //+
}                                                      //+
__global__ void reduce(const float* x, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) last_warp(s, threadIdx.x);
    if (threadIdx.x == 0) out[0] = s[0];
}
