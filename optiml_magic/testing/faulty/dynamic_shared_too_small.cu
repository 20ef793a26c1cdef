// The launch gives half of the shared memory that the kernel uses.
// sanitizer: memcheck
// launch: flip grid=2 block=64 shared=128 args=x,out  //-
// launch: flip grid=2 block=64 shared=256 args=x,out  //+
// data: x=in:f4[128] out=out:f4[128]
extern __shared__ float buffer[];
__global__ void flip(const float* x, float* out) {
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    buffer[t] = x[i];  //! out_of_bounds
    __syncthreads();
    out[i] = buffer[63 - t];
}
