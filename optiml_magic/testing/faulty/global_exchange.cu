// Threads of a block pass values on through global memory, without a barrier.
// launch: rotate grid=2 block=64 args=x,tmp,out
// data: x=in:f4[128] tmp=scratch:f4[128] out=out:f4[128]
__global__ void rotate(const float* x, float* tmp, float* out) {
    int base = blockIdx.x * 64, t = threadIdx.x;
    tmp[base + t] = 3.0f * x[base + t];  //! race
    __syncthreads();  //+
    out[base + t] = tmp[base + (t + 1) % 64];  //! race
}
