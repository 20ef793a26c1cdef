// Any grid works with a grid-stride loop; here it is smaller than the data.
#pragma optiml launch scale_and_shift grid(4) block(128)
__global__ void scale_and_shift(float *x, float scale, float shift, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        x[i] = scale * x[i] + shift;
}
