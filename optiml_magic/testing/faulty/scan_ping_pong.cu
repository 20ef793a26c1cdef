// Two arrays in turn need one barrier a round; here there is none.
// sanitizer: racecheck
// launch: scan grid=1 block=128 args=x,out
// data: x=in:f4[128] out=out:f4[128]
__global__ void scan(const float* x, float* out) {
    __shared__ float s[2][128];
    int t = threadIdx.x, from = 0;
    s[0][t] = x[t];
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        float v = s[from][t];
        if (t >= d) v += s[from][t - d];  //! race
        s[1 - from][t] = v;  //! race
        from = 1 - from;
        __syncthreads();  //+
    }
    out[t] = s[from][t];
}
