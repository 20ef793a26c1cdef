// One thread computes what all the others read at once.
// sanitizer: racecheck
// launch: centre grid=2 block=64 args=x,out
// data: x=in:f4[128] out=out:f4[128]
__global__ void centre(const float* x, float* out) {
    __shared__ float pivot;
    int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x == 0) pivot = x[i];  //! race
    __syncthreads();  //+
    out[i] = x[i] - pivot;  //! race
}
