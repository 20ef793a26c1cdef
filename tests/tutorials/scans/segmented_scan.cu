// A scan of pairs: the flag says where a segment begins.
struct FlaggedSum {
    float sum;
    int flag;
    __device__ FlaggedSum operator+(const FlaggedSum &right) const
    {
        return {right.flag ? right.sum : sum + right.sum, flag | right.flag};
    }
};

#pragma optiml launch segmented_scan grid(1) block(256)
__global__ void segmented_scan(const float *x, const int *heads, float *out, int n)
{
    __shared__ FlaggedSum s[256];
    int t = threadIdx.x;
    FlaggedSum carry{0.0f, 0};
    for (int base = 0; base < n; base += 256) {
        int i = base + t;
        s[t] = i < n ? FlaggedSum{x[i], heads[i]} : FlaggedSum{0.0f, 0};
        __syncthreads();
        for (int d = 1; d < 256; d *= 2) {
            FlaggedSum left = s[t];
            if (t >= d) left = s[t - d] + s[t];
            __syncthreads();
            s[t] = left;
            __syncthreads();
        }
        FlaggedSum mine = carry + s[t];
        if (i < n) out[i] = mine.sum;
        carry = carry + s[255];
        __syncthreads();
    }
}
