// A list whose neighbours lie within 64 of its first is that first and a mask of 64 bits, made once a
// node: what two lists share is then a shift, an and, and a count. Other lists are walked as they are.
#pragma optiml scratch table i4[4 * (size(starts) - 1)]
#pragma optiml launch summarise grid(cdiv(size(starts) - 1, 256)) block(256) args(starts, columns, table, size(starts) - 1)
#pragma optiml launch jaccard grid(cdiv(edges, 1024)) block(256)

// x: the first neighbour, y: how many, or less than none where the mask does not say it all.
__global__ void summarise(const int* __restrict__ starts, const int* __restrict__ columns, int* __restrict__ table,
                          int nodes) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    const int begin = starts[node], degree = starts[node + 1] - begin;
    const int first = degree > 0 ? columns[begin] : 0;
    unsigned long long mask = 0;
    bool within = degree <= 64;
    const auto put = [&](int column) {
        const unsigned apart = (unsigned)column - (unsigned)first;
        within &= apart < 64;
        mask |= 1ull << (apart & 63);
    };
    int k = begin;
    for (; within && k < begin + degree && k % 4 != 0; k++) put(columns[k]);
    if ((size_t)columns % 16 == 0) {
        #pragma unroll 4
        for (; within && k + 4 <= begin + degree; k += 4) {
            const int4 four = *reinterpret_cast<const int4*>(columns + k);
            put(four.x), put(four.y), put(four.z), put(four.w);
        }
    }
    for (; within && k < begin + degree; k++) put(columns[k]);
    // A neighbour that is there twice is counted twice.
    within &= __popcll(mask) == degree;
    reinterpret_cast<int4*>(table)[node] =
        make_int4(first, within ? degree : -1, (int)(unsigned)mask, (int)(unsigned)(mask >> 32));
}

__device__ __noinline__ float walked(const int* starts, const int* columns, int one, int other) {
    int common = 0;
    const int begin = starts[other], end = starts[other + 1];
    for (int k = starts[one]; k < starts[one + 1]; k++) {
        const int wanted = columns[k];
        int low = begin, high = end;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (columns[middle] < wanted) low = middle + 1;
            else high = middle;
        }
        if (low < end && columns[low] == wanted) common++;
    }
    return __fdividef((float)common, (float)(starts[one + 1] - starts[one] + end - begin - common));
}

__device__ __forceinline__ float weight(const int* starts, const int* columns, const int* table, int one, int other) {
    const int4 a = __ldg(reinterpret_cast<const int4*>(table) + one);
    const int4 b = __ldg(reinterpret_cast<const int4*>(table) + other);
    if ((a.y | b.y) < 0) return walked(starts, columns, one, other);
    const unsigned long long a_mask = (unsigned long long)(unsigned)a.w << 32 | (unsigned)a.z;
    const unsigned long long b_mask = (unsigned long long)(unsigned)b.w << 32 | (unsigned)b.z;
    const long long apart = (long long)b.x - a.x;
    unsigned long long both = 0;
    if (apart >= 0 && apart < 64) both = a_mask >> apart & b_mask;
    if (apart < 0 && apart > -64) both = b_mask >> -apart & a_mask;
    const int common = __popcll(both);
    return __fdividef((float)common, (float)(a.y + b.y - common));
}

__global__ void __launch_bounds__(256) jaccard(const int* __restrict__ starts, const int* __restrict__ columns,
                                               const int* __restrict__ sources, float* __restrict__ weights,
                                               int edges, const int* __restrict__ table) {
    const int edge = (blockIdx.x * 256 + threadIdx.x) * 4;
    const bool fours = ((size_t)columns | (size_t)sources | (size_t)weights) % 16 == 0;
    if (fours && edge + 4 <= edges) {
        const int4 one = __ldcs(reinterpret_cast<const int4*>(sources + edge));
        const int4 other = __ldcs(reinterpret_cast<const int4*>(columns + edge));
        const float4 found = {weight(starts, columns, table, one.x, other.x),
                              weight(starts, columns, table, one.y, other.y),
                              weight(starts, columns, table, one.z, other.z),
                              weight(starts, columns, table, one.w, other.w)};
        __stcs(reinterpret_cast<float4*>(weights + edge), found);
        return;
    }
    for (int at = edge; at < min(edge + 4, edges); at++) {
        weights[at] = weight(starts, columns, table, sources[at], columns[at]);
    }
}
