// out[b,t,:] = wte[inp[b,t],:] + wpe[t,:], four floats at a time.
__device__ inline float4 add_float4(const float4 &a, const float4 &b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void encoder_forward(float4 *out, const int *inp, const float4 *wte, const float4 *wpe, int B, int T, int C4)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int N = B * T * C4;
    if (idx < N) {
        int bt = idx / C4;
        int t = bt % T;
        int c = idx % C4;
        int token = inp[bt];
        out[idx] = add_float4(wte[token * C4 + c], wpe[t * C4 + c]);
    }
}
