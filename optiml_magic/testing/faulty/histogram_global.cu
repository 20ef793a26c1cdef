// The increments go straight to global memory, where blocks meet as well.
// launch: count grid=4 block=64 args=x,bins,n
// data: x=in:i4[256]%8 bins=zero:i4[8] n=i4:256
__global__ void count(const int* x, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) bins[x[i]] += 1;             //- //! race
    if (i < n) atomicAdd(&bins[x[i]], 1);   //+
}
