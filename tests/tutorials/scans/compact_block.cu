// Stream compaction of each block: keep the positive elements in order.
#pragma optiml launch compact grid(cdiv(n, 128)) block(128)
__global__ void compact(const int *in, int *out, int *counts, int n)
{
    __shared__ int position[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    int keep = i < n && in[i] > 0;
    position[t] = keep;
    __syncthreads();
    for (int d = 1; d < 128; d <<= 1) {
        int v = t >= d ? position[t - d] : 0;
        __syncthreads();
        position[t] += v;
        __syncthreads();
    }
    int kept = position[127];
    if (keep) out[blockIdx.x * 128 + position[t] - 1] = in[i];
    if (t >= kept) out[blockIdx.x * 128 + t] = 0;
    if (t == 0) counts[blockIdx.x] = kept;
}
