#pragma optiml zero(y)
__global__ void spmv_coo(const int *row, const int *col, const float *val, const float *x, float *y, int nnz)
{
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < nnz; k += blockDim.x * gridDim.x)
        atomicAdd(y + row[k], val[k] * x[col[k]]);
}
