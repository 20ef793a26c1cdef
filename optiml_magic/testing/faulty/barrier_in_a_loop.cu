// A block-stride loop with a barrier in it: threads leave the loop at different times.
// sanitizer: synccheck
// launch: scan grid=1 block=64 args=x,out,n
// data: x=in:f4[80] out=out:f4[80] n=i4:80
__global__ void scan(const float* x, float* out, int n) {
    __shared__ float s[64];
    for (int i = threadIdx.x; i < n; i += 64) {                        //-
    for (int base = 0; base < n; base += 64) {                         //+
        int i = base + threadIdx.x;                                    //+
        if (i < n)                                                     //+
        s[threadIdx.x] = x[i];
        __syncthreads();  //! barrier_divergence
        if (i < n)                                                     //+
        out[i] = s[threadIdx.x] + (threadIdx.x > 0 ? s[threadIdx.x - 1] : 0.0f);
        __syncthreads();
    }
}
