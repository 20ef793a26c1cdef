// Rows by how many of their quantised dimensions have the code of the question's; eight codes of four bits a word.
#pragma optiml launch code_matches grid(cdiv(rows, 256)) block(256)
__global__ void code_matches(const unsigned int* codes, const unsigned int* asked, unsigned short* agree, int rows, int words)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    unsigned short n = 0;
    for (int w = 0; w < words; ++w) {
        unsigned int mine = codes[row * words + w], theirs = asked[w];
        for (int nibble = 0; nibble < 8; ++nibble) {
            if (((mine >> 4 * nibble) & 0xF) == ((theirs >> 4 * nibble) & 0xF))
                n++;
        }
    }
    agree[row] = n;
}
