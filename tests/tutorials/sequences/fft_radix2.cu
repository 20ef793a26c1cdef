// A 128-point FFT in shared memory, one a block: bit reversal, then seven butterfly passes.
constexpr int LOG_N = 7;
constexpr int N = 1 << LOG_N;

__device__ float2 cmul(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }

#pragma optiml launch fft128 grid(batch) block(64)
__global__ void fft128(const float2 *in, float2 *out, int batch)
{
    __shared__ float2 s[N];
    const int t = threadIdx.x;
    const float2 *src = in + blockIdx.x * N;
    for (int i = t; i < N; i += N / 2) s[__brev(i) >> (32 - LOG_N)] = src[i];
    for (int half = 1; half < N; half *= 2) {
        __syncthreads();
        int k = t & (half - 1);
        int top = 2 * (t - k) + k;
        float2 w;
        sincospif(-(float)k / half, &w.y, &w.x);
        float2 a = s[top], b = cmul(w, s[top + half]);
        s[top] = make_float2(a.x + b.x, a.y + b.y);
        s[top + half] = make_float2(a.x - b.x, a.y - b.y);
    }
    __syncthreads();
    for (int i = t; i < N; i += N / 2) out[blockIdx.x * N + i] = s[i];
}
