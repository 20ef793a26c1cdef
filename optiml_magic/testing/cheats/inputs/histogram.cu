#pragma optiml zero(bins)
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const int* values, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[values[i]], 1);
}
