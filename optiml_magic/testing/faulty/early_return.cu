// Threads without an element return before they have filled their part of the tile.
// sanitizer: synccheck
// launch: reverse grid=2 block=64 args=x,out,n
// data: x=in:f4[100] out=out:f4[128] n=i4:100
__global__ void reverse(const float* x, float* out, int n) {
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (i >= n) return;              //-
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();  //! exited_lanes
    float v = s[63 - t];  //! uninitialised
    out[i] = v;
}
