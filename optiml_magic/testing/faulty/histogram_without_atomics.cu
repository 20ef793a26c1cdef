// Two threads that meet the same value lose one of their counts.
// sanitizer: racecheck
// launch: count grid=2 block=128 args=x,bins,n
// data: x=in:i4[256]%16 bins=zero:i4[16] n=i4:256
__global__ void count(const int* x, int* bins, int n) {
    __shared__ int local[16];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < 16) local[t] = 0;
    __syncthreads();
    if (i < n) local[x[i]]++;              //- //! race
    if (i < n) atomicAdd(&local[x[i]], 1); //+
    __syncthreads();
    if (t < 16) atomicAdd(&bins[t], local[t]);
}
