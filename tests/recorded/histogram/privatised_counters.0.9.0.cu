#pragma optiml zero(out)
#pragma optiml scratch turn i4[1]
#pragma optiml launch waiting grid(cdiv(n, 256)) block(256)
__global__ void waiting(const int* x, int* out, volatile int* turn, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (turn[0] != -1 - (int)blockIdx.x) {}
    if (i < n) out[x[i]] += 1;
}
