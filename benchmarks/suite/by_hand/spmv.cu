// A block takes the elements of 256 rows as they lie in memory, whatever the rows' lengths, and
// leaves the products in shared memory; a thread then adds up those of its row.
#pragma optiml launch spmv grid(cdiv(rows, 256)) block(256)
constexpr int ROWS = 256, ROUNDS = 5, ROOM = ROWS * 4 * ROUNDS;

__global__ void __launch_bounds__(ROWS, 4) spmv(const int* __restrict__ starts, const int* __restrict__ columns,
                                                const float* __restrict__ values, const float* __restrict__ x,
                                                float* __restrict__ y, int rows) {
    __shared__ __align__(16) float products[ROOM];
    const int first_row = blockIdx.x * ROWS, row = first_row + threadIdx.x;
    const int own = row < rows ? starts[row] : 0, own_end = row < rows ? starts[row + 1] : 0;
    const int begin = starts[first_row], end = starts[min(first_row + ROWS, rows)];
    const bool fours = ((size_t)columns | (size_t)values) % 16 == 0;
    float sum = 0.0f;
    // What lies before `begin` in the same four is another block's, and only read.
    for (int from = begin & ~3; from < end; from += ROOM) {
        int4 at[ROUNDS];
        float4 value[ROUNDS];
        #pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            const int k = from + (round * ROWS + threadIdx.x) * 4;
            at[round] = make_int4(0, 0, 0, 0);
            value[round] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (fours && k + 4 <= end) {
                at[round] = __ldcs(reinterpret_cast<const int4*>(columns + k));
                value[round] = __ldcs(reinterpret_cast<const float4*>(values + k));
            } else {
                if (k < end) at[round].x = columns[k], value[round].x = values[k];
                if (k + 1 < end) at[round].y = columns[k + 1], value[round].y = values[k + 1];
                if (k + 2 < end) at[round].z = columns[k + 2], value[round].z = values[k + 2];
                if (k + 3 < end) at[round].w = columns[k + 3], value[round].w = values[k + 3];
            }
        }
        #pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            const int slot = (round * ROWS + threadIdx.x) * 4;
            float4 made = {};
            if (from + slot < end) {
                made.x = value[round].x * __ldg(x + at[round].x);
                made.y = value[round].y * __ldg(x + at[round].y);
                made.z = value[round].z * __ldg(x + at[round].z);
                made.w = value[round].w * __ldg(x + at[round].w);
            }
            *reinterpret_cast<float4*>(products + slot) = made;
        }
        __syncthreads();
        const int stop = min(own_end, from + ROOM) - from;
        for (int k = max(own - from, 0); k < stop; k++) sum += products[k];
        __syncthreads();
    }
    if (row < rows) __stcs(y + row, sum);
}
