// Two buffers in turn: without a barrier a round, a fast warp fills one that is still being read.
// sanitizer: racecheck
// launch: sums grid=1 block=64 args=x,out,n
// data: x=in:f4[512] out=out:f4[64] n=i4:8
__global__ void sums(const float* x, float* out, int n) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    float total = 0.0f;
    s[0][t] = x[t];
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        if (k + 1 < n)
            s[(k + 1) % 2][t] = x[(k + 1) * 64 + t];  //! race
        total += s[k % 2][63 - t];  //! race
        __syncthreads();  //+
    }
    out[t] = total;
}
