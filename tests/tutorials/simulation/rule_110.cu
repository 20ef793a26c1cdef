// An elementary cellular automaton on bits, 32 cells to a word, many generations in one block.
#pragma optiml launch automaton grid(1) block(words)
__global__ void automaton(const unsigned *start, unsigned *history, int words, int steps)
{
    __shared__ unsigned row[2][64];
    int w = threadIdx.x;
    row[0][w] = start[w];
    __syncthreads();
    for (int t = 0; t < steps; ++t) {
        const unsigned *now = row[t & 1];
        unsigned centre = now[w];
        unsigned left_word = now[(w + words - 1) % words], right_word = now[(w + 1) % words];
        unsigned left = (centre << 1) | (left_word >> 31);
        unsigned right = (centre >> 1) | (right_word << 31);
        unsigned next = (centre ^ right) | (centre & ~left);
        history[t * words + w] = centre;
        row[(t + 1) & 1][w] = next;
        __syncthreads();
    }
}
