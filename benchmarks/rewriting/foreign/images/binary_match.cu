// Keypoints matched by binary descriptors of 256 bits: the nearest, and whether it is near enough.
__global__ void binary_match(const uint4 *left, const uint4 *right, int *match, int n, int m, int most)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int best = 257, at = -1;
    for (int j = 0; j < m; j++) {
        const unsigned *a = (const unsigned *)(left + 2 * i), *b = (const unsigned *)(right + 2 * j);
        int d = 0;
        for (int bit = 0; bit < 256; bit++)
            if ((a[bit / 32] >> (bit % 32) & 1) != (b[bit / 32] >> (bit % 32) & 1))
                d++;
        if (d < best) { best = d; at = j; }
    }
    match[i] = best <= most ? at : -1;
}
#pragma optiml launch binary_match grid(cdiv(n, 64)) block(64)
