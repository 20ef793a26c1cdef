// A warp turns a small tile in shared memory as if its lanes still ran in step.
// sanitizer: racecheck
// launch: turn grid=1 block=32 args=x,out
// data: x=in:f4[1024] out=out:f4[1024]
__global__ void turn(const float* x, float* out) {
    __shared__ float s[32][33];
    int lane = threadIdx.x;
    for (int r = 0; r < 32; ++r) s[r][lane] = x[r * 32 + lane];  //! race
    __syncwarp();  //+
    for (int r = 0; r < 32; ++r) out[r * 32 + lane] = s[lane][r];  //! race
}
