// Both reads as two planes of bits, of the lower and of the upper bits of their bases, so that three words
// say for each shift where they agree. A run is what a one carries through when it is added to those words.
#pragma optiml launch snake grid(cdiv(pairs, 256)) block(256)
constexpr int WORDS = 6, LENGTH = 96, BAND = 3, SHIFTS = 2 * BAND + 1;

struct Bits {
    unsigned w[3];
};

__device__ __forceinline__ Bits sum(const Bits& a, const Bits& b) {
    Bits c;
    asm("add.cc.u32 %0, %3, %6;\n\taddc.cc.u32 %1, %4, %7;\n\taddc.u32 %2, %5, %8;"
        : "=r"(c.w[0]), "=r"(c.w[1]), "=r"(c.w[2])
        : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(b.w[0]), "r"(b.w[1]), "r"(b.w[2]));
    return c;
}

// One instruction, of which compilers make two where masks are there: TABLE is what it says of 0xf0, 0xcc and 0xaa.
template <int TABLE>
__device__ __forceinline__ unsigned of_three(unsigned a, unsigned b, unsigned c) {
    unsigned d;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
    return d;
}
constexpr int CHOSEN = 0xca, DIFFER_OR = 0xbe, SAME_AND_NOT = 0x09, OR_DIFFER = 0xf6;

// Two words change places in one bit of the places of their bits, the one of that distance.
__device__ __forceinline__ void swap_bits(unsigned& a, unsigned& b, int distance, unsigned low) {
    const unsigned first = of_three<CHOSEN>(low, a, b << distance);
    b = of_three<CHOSEN>(low, a >> distance, b);
    a = first;
}

// Sixteen bases a word become planes, 32 bases a word: five such changes, of which bytes make two at once.
__device__ __forceinline__ void planes(const unsigned (&words)[WORDS], Bits& lower, Bits& upper) {
    #pragma unroll
    for (int k = 0; k < 3; k++) {
        const unsigned one = words[2 * k], other = words[2 * k + 1];
        unsigned a = __byte_perm(one, other, 0x6420), b = __byte_perm(one, other, 0x7531);
        swap_bits(a, b, 4, 0x0f0f0f0fu);
        swap_bits(a, b, 2, 0x33333333u);
        swap_bits(a, b, 1, 0x55555555u);
        lower.w[k] = a;
        upper.w[k] = b;
    }
}

// Base i is then what base i + by was.
template <int BY>
__device__ __forceinline__ Bits moved(const Bits& from) {
    if constexpr (BY == 0) return from;
    Bits to;
    #pragma unroll
    for (int k = 0; k < 3; k++) {
        if constexpr (BY > 0) to.w[k] = __funnelshift_r(from.w[k], k < 2 ? from.w[k < 2 ? k + 1 : k] : 0, BY);
        else to.w[k] = __funnelshift_l(k > 0 ? from.w[k > 0 ? k - 1 : k] : 0, from.w[k], -BY);
    }
    return to;
}

template <int BY>
__device__ __forceinline__ Bits alike(const Bits& lower, const Bits& upper, const Bits& lower2, const Bits& upper2) {
    const Bits low = moved<BY>(lower2), high = moved<BY>(upper2);
    Bits same;
    #pragma unroll
    for (int k = 0; k < 3; k++) {
        // Beyond the ends no base is alike.
        const unsigned last = BY > 0 ? ~(~0u >> BY) : 0, first = BY < 0 ? ~(~0u << -BY) : 0;
        const unsigned ends = k == 0 ? first : k == 2 ? last : 0;
        const unsigned other = of_three<DIFFER_OR>(lower.w[k], low.w[k], ends);
        same.w[k] = of_three<SAME_AND_NOT>(other, upper.w[k], high.w[k]);
    }
    return same;
}

__device__ int accepted_one(const unsigned int* read, const unsigned int* place, int band) {
    const auto base = [](const unsigned* text, int at) { return text[at / 16] >> 2 * (at % 16) & 3; };
    int column = 0, edits = 0;
    while (column < LENGTH && edits <= band) {
        int longest = 0;
        for (int shift = -band; shift <= band; shift++) {
            int run = 0;
            while (column + run < LENGTH && column + run + shift >= 0 && column + run + shift < LENGTH &&
                   base(read, column + run) == base(place, column + run + shift)) {
                run++;
            }
            longest = max(longest, run);
        }
        column += longest;
        if (column < LENGTH) edits++, column++;
    }
    return edits <= band;
}

__device__ __forceinline__ void words_of(const unsigned int* text, unsigned (&words)[WORDS]) {
    #pragma unroll
    for (int k = 0; k < WORDS; k += 2) {
        const uint2 two = __ldg(reinterpret_cast<const uint2*>(text + k));
        words[k] = two.x;
        words[k + 1] = two.y;
    }
}

__global__ void __launch_bounds__(256) snake(const unsigned int* __restrict__ reads,
                                             const unsigned int* __restrict__ places, int* __restrict__ accepted,
                                             int pairs, int band) {
    const int pair = blockIdx.x * 256 + threadIdx.x;
    if (pair >= pairs) return;
    const unsigned* read = reads + (size_t)pair * WORDS;
    const unsigned* place = places + (size_t)pair * WORDS;
    if (band != BAND) {
        accepted[pair] = accepted_one(read, place, band);
        return;
    }
    unsigned one[WORDS], other[WORDS];
    words_of(read, one);
    words_of(place, other);
    Bits lower, upper, lower2, upper2;
    planes(one, lower, upper);
    planes(other, lower2, upper2);
    const Bits same[SHIFTS] = {
        alike<0>(lower, upper, lower2, upper2),  alike<1>(lower, upper, lower2, upper2),
        alike<2>(lower, upper, lower2, upper2),  alike<3>(lower, upper, lower2, upper2),
        alike<-1>(lower, upper, lower2, upper2), alike<-2>(lower, upper, lower2, upper2),
        alike<-3>(lower, upper, lower2, upper2),
    };
    Bits at = {{1, 0, 0}};  // the column that comes next, none beyond the end
    #pragma unroll
    for (int edits = 0; edits < BAND; edits++) {
        Bits passed = {};  // from there to where the longest run stops
        #pragma unroll
        for (int s = 0; s < SHIFTS; s++) {
            const Bits carried = sum(same[s], at);
            #pragma unroll
            for (int k = 0; k < 3; k++) passed.w[k] = of_three<OR_DIFFER>(passed.w[k], carried.w[k], same[s].w[k]);
        }
        at = sum(passed, at);
    }
    // The last run has to reach the end, if an earlier one, or the edit after it, did not.
    unsigned passed = 0;
    #pragma unroll
    for (int s = 0; s < SHIFTS; s++) passed |= same[s].w[2] & ~sum(same[s], at).w[2];
    accepted[pair] = (at.w[0] | at.w[1] | at.w[2]) == 0 || passed >> 31;
}
