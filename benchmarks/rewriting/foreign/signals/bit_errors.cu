// Bit errors of packets that were received, the last word of which may not be full.
#pragma optiml launch bit_errors grid(cdiv(packets, 128)) block(128)
__global__ void bit_errors(const unsigned int* sent, const unsigned int* got, int* errors, int packets, int bits)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p < packets) {
        const int stride = (bits + 31) >> 5;
        int bad = 0;
        for (int b = 0; b < bits; ++b) {
            unsigned int x = sent[p * stride + (b >> 5)] ^ got[p * stride + (b >> 5)];
            bad += (x >> (b & 31)) & 1;
        }
        errors[p] = bad;
    }
}
