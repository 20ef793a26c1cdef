// Blocks overwrite what their neighbours have yet to read.
// launch: blur grid=4 block=64 args=x,out,n
// data: x=inout:f4[256] out=out:f4[256] n=i4:256
__global__ void blur(float* x, float* out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float left = i > 0 ? x[i - 1] : 0.0f;  //! race
    __syncthreads();
    x[i] = 0.5f * (left + x[i]);           //- //! race
    out[i] = 0.5f * (left + x[i]);         //+
}
