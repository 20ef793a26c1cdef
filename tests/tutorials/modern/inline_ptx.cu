// A few instructions by hand.
__device__ unsigned add_with_carry(unsigned a_lo, unsigned b_lo, unsigned a_hi, unsigned b_hi, unsigned *hi)
{
    unsigned lo;
    asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %4, %5;" : "=r"(lo), "=r"(*hi) : "r"(a_lo), "r"(b_lo), "r"(a_hi), "r"(b_hi));
    return lo;
}

__device__ unsigned bit_field(unsigned x)
{
    unsigned r;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "n"(4), "n"(9));
    return r;
}

__global__ void wide_add(const uint2 *a, const uint2 *b, uint2 *sum, unsigned *field, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned hi, lo = add_with_carry(a[i].x, b[i].x, a[i].y, b[i].y, &hi);
        sum[i] = make_uint2(lo, hi);
        field[i] = bit_field(a[i].x);
    }
}
