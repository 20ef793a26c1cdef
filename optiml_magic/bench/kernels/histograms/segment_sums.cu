#pragma optiml zero(sums)
#pragma optiml launch segment_sums grid(cdiv(n, 256)) block(256)
__global__ void segment_sums(const float* values, const int* segments, float* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&sums[segments[i]], values[i]);
    }
}
