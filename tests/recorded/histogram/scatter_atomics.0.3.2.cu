#pragma optiml zero(out)
#pragma optiml launch paired grid(cdiv(n, 512)) block(256)
__global__ void paired(const int* x, int* out, int n) {
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) atomicAdd(&out[x[i]], 1);
    if (i + 1 < n) atomicAdd(&out[x[i + 1]], 1);
}
