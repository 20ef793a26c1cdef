// A scan of any length: scan the blocks, scan their totals, add them back.
#pragma optiml scratch totals int[cdiv(n, 256)]
#pragma optiml launch scan_blocks grid(cdiv(n, 256)) block(256) args(in, out, totals, n)
#pragma optiml launch scan_totals grid(1) block(1) args(totals, cdiv(n, 256))
#pragma optiml launch add_offsets grid(cdiv(n, 256)) block(256) args(out, totals, n)

__global__ void scan_blocks(const int *in, int *out, int *totals, int n)
{
    __shared__ int s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    int mine = i < n ? in[i] : 0;
    s[t] = mine;
    __syncthreads();
    for (int stride = 1; stride < 256; stride *= 2) {
        int add = t >= stride ? s[t - stride] : 0;
        __syncthreads();
        s[t] += add;
        __syncthreads();
    }
    if (i < n) out[i] = s[t] - mine;
    if (t == 255) totals[blockIdx.x] = s[t];
}

__global__ void scan_totals(int *totals, int count)
{
    int sum = 0;
    for (int b = 0; b < count; b++) {
        int t = totals[b];
        totals[b] = sum;
        sum += t;
    }
}

__global__ void add_offsets(int *out, const int *totals, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += totals[blockIdx.x];
}
