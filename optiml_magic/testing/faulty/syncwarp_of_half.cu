// Only the lower half of the warp meets, but values cross the middle.
// sanitizer: racecheck
// launch: flip grid=1 block=32 args=x,out
// data: x=in:f4[32] out=out:f4[32]
__global__ void flip(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];  //! race
    if (t < 16) __syncwarp(0x0000ffff); else __syncwarp(0xffff0000);  //-
    __syncwarp();  //+
    out[t] = s[31 - t];  //! race
}
