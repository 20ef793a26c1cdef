// A constant table read at a different place by each lane.
__constant__ unsigned char table[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

__global__ void nibble_popcount(const unsigned int *words, int *bits, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int w = words[i];
        int count = 0;
        while (w) {
            count += table[w & 15];
            w >>= 4;
        }
        bits[i] = count;
    }
}
