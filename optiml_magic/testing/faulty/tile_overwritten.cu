// Tiled matrix product: the next tile is loaded while slower warps still use the last one.
// sanitizer: racecheck
// launch: matmul grid=2,2 block=16,16 args=a,b,c,n
// data: a=in:f4[1024] b=in:f4[1024] c=out:f4[1024] n=i4:32
#define TILE 16
__global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += TILE) {
        as[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];    //! race
        bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];  //! race
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];  //! race
        __syncthreads();  //+
    }
    c[row * n + col] = sum;
}
