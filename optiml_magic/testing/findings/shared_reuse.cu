// Every thread loads its row and column from global memory; the other shares tiles of them.
// task: matmul
// devices: emulated cuda
#pragma optiml launch k grid(cdiv(n, 32), cdiv(m, 32)) block(32, 32)
__global__ void k(const float* a, const float* b, float* c, int m, int n, int depth) {
    __shared__ float as[32][32], bs[32][32];  //+
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    if (row >= m || col >= n) return;  //-
    for (int i = 0; i < depth; ++i)    //-
        sum += a[row * depth + i] * b[i * n + col];  //-!
    for (int base = 0; base < depth; base += 32) {  //+
        int ka = base + threadIdx.x, kb = base + threadIdx.y;  //+
        as[threadIdx.y][threadIdx.x] = row < m && ka < depth ? a[row * depth + ka] : 0.0f;  //+
        bs[threadIdx.y][threadIdx.x] = kb < depth && col < n ? b[kb * n + col] : 0.0f;  //+
        __syncthreads();  //+
        for (int i = 0; i < 32; ++i)  //+
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];  //+
        __syncthreads();  //+
    }  //+
    if (row < m && col < n)  //+
    c[row * n + col] = sum;
}
