// Lanes with equal values meet at one bin; the other counts them within the warp first.
// task: histogram
// devices: emulated cuda
#pragma optiml zero(bins)
#pragma optiml launch k grid(cdiv(n, 1024)) block(256)
__global__ void k(const int* values, int* bins, int n) {
    __shared__ int own[16];                       //+
    if (threadIdx.x < 16) own[threadIdx.x] = 0;   //+
    __syncthreads();                              //+
    int first = blockIdx.x * 1024 + threadIdx.x;
    for (int j = 0; j < 4; ++j) {
        int i = first + j * 256;
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
