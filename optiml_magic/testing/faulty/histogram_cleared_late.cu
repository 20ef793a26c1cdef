// Fast warps count into bins that slow ones have yet to clear.
// sanitizer: racecheck
// launch: count grid=2 block=128 args=x,bins,n
// data: x=in:i4[256]%64 bins=zero:i4[64] n=i4:256
__global__ void count(const int* x, int* bins, int n) {
    __shared__ int local[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < 64) local[t] = 0;  //! race
    __syncthreads();  //+
    if (i < n) atomicAdd(&local[x[i]], 1);  //! race
    __syncthreads();
    if (t < 64) atomicAdd(&bins[t], local[t]);
}
