// Bytes of one word come from four threads; a fifth reads the word too early.
// sanitizer: racecheck
// launch: pack grid=1 block=128 args=x,out
// data: x=in:i4[128] out=out:u4[32]
__global__ void pack(const int* x, unsigned* out) {
    __shared__ __align__(4) unsigned char s[128];
    int t = threadIdx.x;
    s[t] = x[t] & 255;  //! race
    __syncthreads();  //+
    if (t < 32)
        out[t] = reinterpret_cast<unsigned*>(s)[31 - t];  //! race
}
