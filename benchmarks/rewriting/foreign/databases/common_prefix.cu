// How many characters neighbours of a sorted column have in common from the left, for its compression.
__global__ void common_prefix(const unsigned int *text, int *prefix, int rows, int width)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int n = 0;
    if (r > 0) {
        const unsigned int *me = text + r * (width / 4), *before = me - width / 4;
        for (; n < width; n++) {
            unsigned char a = (me[n / 4] >> (8 * (n % 4))) & 0xff;
            unsigned char b = (before[n / 4] >> (8 * (n % 4))) & 0xff;
            if (a != b || a == 0) break;
        }
    }
    prefix[r] = n;
}
#pragma optiml launch common_prefix grid(cdiv(rows, 128)) block(128)
