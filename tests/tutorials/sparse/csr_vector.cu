#pragma optiml launch spmv_csr_vector grid(cdiv(num_rows, 4)) block(128)
__global__ void spmv_csr_vector(int num_rows, const int *ptr, const int *indices, const float *data, const float *x, float *y)
{
    __shared__ volatile float vals[128];
    int thread_id = blockDim.x * blockIdx.x + threadIdx.x;
    int warp_id = thread_id / 32;
    int lane = thread_id & (32 - 1);
    int row = warp_id;
    if (row < num_rows) {
        vals[threadIdx.x] = 0;
        for (int jj = ptr[row] + lane; jj < ptr[row + 1]; jj += 32)
            vals[threadIdx.x] += data[jj] * x[indices[jj]];
        for (int s = 16; s > 0; s >>= 1) {
            __syncwarp();
            float other = lane < s ? vals[threadIdx.x + s] : 0.0f;
            __syncwarp();
            if (lane < s) vals[threadIdx.x] += other;
        }
        if (lane == 0) y[row] = vals[threadIdx.x];
    }
}
