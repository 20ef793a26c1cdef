// How many bases two aligned reads differ in; sixteen bases a word, two bits each.
#pragma optiml launch read_distance grid(cdiv(pairs, 128)) block(128)
__global__ void read_distance(const unsigned int* a, const unsigned int* b, int* distance, int pairs, int bases)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pairs) return;
    int words = (bases + 15) / 16;
    int d = 0;
    for (int i = 0; i < bases; i++) {
        unsigned int x = a[p * words + i / 16] >> (2 * (i % 16));
        unsigned int y = b[p * words + i / 16] >> (2 * (i % 16));
        if ((x & 3) != (y & 3)) d++;
    }
    distance[p] = d;
}
