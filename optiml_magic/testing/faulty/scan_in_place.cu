// Hillis and Steele in one array: a thread adds what its neighbour has changed already.
// sanitizer: racecheck
// launch: scan grid=1 block=128 args=x,out
// data: x=in:f4[128] out=out:f4[128]
__global__ void scan(const float* x, float* out) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        float v = t >= d ? s[t - d] : 0.0f;  //! race
        __syncthreads();  //+
        s[t] += v;  //! race
        __syncthreads();
    }
    out[t] = s[t];
}
