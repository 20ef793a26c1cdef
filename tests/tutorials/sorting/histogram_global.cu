#pragma optiml zero(histo)
__global__ void histo_kernel(const unsigned char *buffer, unsigned int *histo, int size)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int stride = blockDim.x * gridDim.x;
    while (i < size) {
        atomicAdd(&histo[buffer[i]], 1);
        i += stride;
    }
}
