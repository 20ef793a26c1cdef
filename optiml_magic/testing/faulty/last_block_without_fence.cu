// The last block to finish adds up what the others wrote, but nothing makes their writes visible.
// launch: sum grid=8 block=64 args=x,partial,out,tickets
// data: x=in:f4[512] partial=scratch:f4[8] out=out:f4[1] tickets=zero:u4[1]
__global__ void sum(const float* x, float* partial, float* out, unsigned* tickets) {
    __shared__ float s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int d = 32; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];  //! race
        __threadfence();  //+
        last = atomicAdd(tickets, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        float total = 0.0f;
        for (int b = 0; b < gridDim.x; ++b)
            total += partial[b];  //! race
        out[0] = total;
    }
}
