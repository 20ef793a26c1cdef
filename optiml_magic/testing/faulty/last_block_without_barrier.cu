// All threads write a part, and one takes the ticket without waiting for the rest.
// launch: copy grid=4 block=64 args=x,parts,out,tickets
// data: x=in:f4[256] parts=scratch:f4[256] out=out:f4[64] tickets=zero:u4[1]
__global__ void copy(const float* x, float* parts, float* out, unsigned* tickets) {
    __shared__ bool last;
    int t = threadIdx.x;
    parts[blockIdx.x * 64 + t] = 2.0f * x[blockIdx.x * 64 + t];  //! race
    __threadfence();
    __syncthreads();  //+
    if (t == 0) last = atomicAdd(tickets, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        float total = 0.0f;
        for (int b = 0; b < gridDim.x; ++b)
            total += parts[b * 64 + t];  //! race
        out[t] = total;
    }
}
