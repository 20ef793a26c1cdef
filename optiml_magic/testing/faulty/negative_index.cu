// The same stencil, wrong at its other end.
// sanitizer: memcheck
// launch: blur grid=4 block=256 args=x,out,n
// data: x=in:f4[1000] out=out:f4[1000] n=i4:1000
__global__ void blur(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = x[i - 1];                    //- //! out_of_bounds
    float left = i > 0 ? x[i - 1] : x[i];     //+
    out[i] = 0.5f * (left + x[i]);
}
