#pragma optiml launch bit_tricks grid(cdiv(n, 128)) block(128)
__global__ void bit_tricks(const unsigned *x, unsigned *reversed, int *ones, int *leading, int *lowest,
                           unsigned *rotated, unsigned *swapped, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned v = x[i];
        reversed[i] = __brev(v);
        ones[i] = __popc(v);
        leading[i] = __clz(v);
        lowest[i] = __ffs(v);
        rotated[i] = __funnelshift_l(v, v, 7);
        swapped[i] = __byte_perm(v, 0, 0x0123);
    }
}
