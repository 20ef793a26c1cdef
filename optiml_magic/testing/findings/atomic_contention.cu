// Lanes with equal values meet at one bin; the other counts them within the warp first.
// task: histogram
// devices: emulated cuda
#pragma optiml zero(bins)
#pragma optiml launch k grid(min(cdiv(n, 256), 264)) block(256)
__global__ void k(const int* values, int* bins, int n) {
    __shared__ int own[16];                       //+
    if (threadIdx.x < 16) own[threadIdx.x] = 0;   //+
    __syncthreads();                              //+
    for (int first = blockIdx.x * blockDim.x; first < n; first += gridDim.x * blockDim.x) {
        int i = first + threadIdx.x;
        if (i < n)                                //-
            atomicAdd(&bins[values[i]], 1);       //-!
        int value = i < n ? values[i] : 16;                        //+
        unsigned peers = __match_any_sync(0xffffffff, value);      //+
        int leader = __ffs(peers) - 1;                             //+
        if (value < 16 && threadIdx.x % 32 == leader)              //+
            atomicAdd(&own[value], __popc(peers));                 //+
    }
    __syncthreads();                                                      //+
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);  //+
}
