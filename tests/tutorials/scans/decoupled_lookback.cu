// One-pass scan: each block publishes its sum, then looks back over its predecessors.
#define TILE 128
enum Status : unsigned { EMPTY = 0, AGGREGATE = 1, PREFIX = 2 };

#pragma optiml scratch state unsigned long long[cdiv(n, 128)]
#pragma optiml scratch ticket unsigned int[1]
#pragma optiml zero(state)
#pragma optiml zero(ticket)
#pragma optiml launch onepass_scan grid(cdiv(n, 128)) block(128)

__device__ unsigned long long pack(unsigned status, unsigned value)
{
    return ((unsigned long long)status << 32) | value;
}

__global__ void onepass_scan(const unsigned *in, unsigned *out, unsigned long long *state, unsigned *ticket, int n)
{
    __shared__ unsigned s[TILE];
    __shared__ unsigned tile, before;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1u);  // blocks in the order in which they start
    __syncthreads();

    int t = threadIdx.x, i = tile * TILE + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = 1; d < TILE; d <<= 1) {
        unsigned v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }

    if (t == 0) {
        unsigned total = s[TILE - 1], sum = 0;
        if (tile == 0) {
            atomicExch(&state[0], pack(PREFIX, total));
        } else {
            atomicExch(&state[tile], pack(AGGREGATE, total));
            int look = tile - 1;
            while (true) {
                unsigned long long seen = atomicAdd(&state[look], 0ull);
                unsigned status = (unsigned)(seen >> 32);
                if (status == EMPTY) continue;
                sum += (unsigned)seen;
                if (status == PREFIX) break;
                --look;
            }
            atomicExch(&state[tile], pack(PREFIX, sum + total));
        }
        before = sum;
    }
    __syncthreads();
    if (i < n) out[i] = before + s[t];
}
