// A three-point stencil that forgets that the last element has no right neighbour.
// sanitizer: memcheck
// launch: blur grid=4 block=256 args=x,out,n
// data: x=in:f4[1000] out=out:f4[1000] n=i4:1000
__global__ void blur(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? x[i - 1] : 0.0f;
    float right = i + 1 <= n ? x[i + 1] : 0.0f;  //- //! out_of_bounds
    float right = i + 1 < n ? x[i + 1] : 0.0f;   //+
    out[i] = (left + x[i] + right) / 3.0f;
}
