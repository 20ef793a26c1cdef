#pragma optiml zero(out)
#pragma optiml launch sampled grid(cdiv(n, 512)) block(256)
__global__ void sampled(const int* x, int* out, int n) {
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 1 < n && x[i] == x[i + 1]) atomicAdd(&out[x[i]], 2);
    else if (i < n) atomicAdd(&out[x[i]], 1);
}
