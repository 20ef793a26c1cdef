// One pass for maximum and sum together; pairs are merged across the warp.
struct MD {
    float m;  // maximum so far
    float d;  // sum of exp(x - m)
};

__device__ __forceinline__ MD reduce_md_op(MD a, MD b)
{
    bool a_bigger = a.m > b.m;
    MD bigger = a_bigger ? a : b;
    MD smaller = a_bigger ? b : a;
    MD res;
    res.d = bigger.d + smaller.d * __expf(smaller.m - bigger.m);
    res.m = bigger.m;
    return res;
}

#pragma optiml launch online_softmax grid(rows) block(32)
__global__ void online_softmax(const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
    x += blockIdx.x * cols;
    y += blockIdx.x * cols;
    MD md = {-FLT_MAX, 0.0f};
    for (int c = threadIdx.x; c < cols; c += 32) md = reduce_md_op(md, MD{x[c], 1.0f});
    for (int mask = 16; mask > 0; mask /= 2) {
        MD other = {__shfl_xor_sync(0xffffffff, md.m, mask), __shfl_xor_sync(0xffffffff, md.d, mask)};
        md = reduce_md_op(md, other);
    }
    float inverse = __fdividef(1.0f, md.d);
    for (int c = threadIdx.x; c < cols; c += 32) y[c] = __expf(x[c] - md.m) * inverse;
}
