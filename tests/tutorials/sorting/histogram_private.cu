#define NUM_BINS 64

// A histogram for each block in shared memory, added to the global one at the end.
#pragma optiml zero(bins)
#pragma optiml launch histogram_private grid(6) block(128)
__global__ void histogram_private(const unsigned int *input, unsigned int *bins, unsigned int num_elements)
{
    __shared__ unsigned int histo_s[NUM_BINS];
    for (unsigned int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) histo_s[b] = 0u;
    __syncthreads();
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < num_elements; i += blockDim.x * gridDim.x)
        atomicAdd(&histo_s[input[i] % NUM_BINS], 1);
    __syncthreads();
    for (unsigned int b = threadIdx.x; b < NUM_BINS; b += blockDim.x)
        if (histo_s[b] > 0) atomicAdd(&bins[b], histo_s[b]);
}
