#define WORDS 6
#define LENGTH 96

// two bits a base, sixteen bases a word
__device__ int base(const unsigned int* text, int at) {
    return (text[at / 16] >> (2 * (at % 16))) & 3;
}

// a thread a pair: the longest run of equal bases within the band, an edit, the next run
#pragma optiml launch snake grid(cdiv(pairs, 256)) block(256)
__global__ void snake(const unsigned int* reads, const unsigned int* places, int* accepted,
                      int pairs, int band) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    const unsigned int* read = reads + pair * WORDS;
    const unsigned int* place = places + pair * WORDS;
    int column = 0;
    int edits = 0;
    while (column < LENGTH && edits <= band) {
        int longest = 0;
        for (int shift = -band; shift <= band; shift++) {
            int run = 0;
            while (column + run < LENGTH && column + run + shift >= 0 &&
                   column + run + shift < LENGTH &&
                   base(read, column + run) == base(place, column + run + shift)) {
                run++;
            }
            if (run > longest) longest = run;
        }
        column += longest;
        if (column < LENGTH) {
            edits++;
            column++;
        }
    }
    accepted[pair] = edits <= band ? 1 : 0;
}
