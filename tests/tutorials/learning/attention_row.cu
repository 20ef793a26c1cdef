// One query row a block: scores, softmax, weighted sum of the values.
#pragma optiml launch attention grid(queries, heads) block(64) shared(keys * sizeof(float))
__global__ void attention(const float *q, const float *k, const float *v, float *out, int heads, int queries, int keys, int dim)
{
    extern __shared__ float scores[];
    __shared__ float shared_max, shared_sum;
    int head = blockIdx.y, row = blockIdx.x, t = threadIdx.x;
    const float *query = q + (head * queries + row) * dim;
    const float *K = k + head * keys * dim, *V = v + head * keys * dim;
    float scale = rsqrtf((float)dim);
    int visible = min(row + 1 + keys - queries, keys);  // causal
    for (int j = t; j < visible; j += blockDim.x) {
        float dot = 0;
        for (int d = 0; d < dim; ++d) dot += query[d] * K[j * dim + d];
        scores[j] = dot * scale;
    }
    __syncthreads();
    if (t < 32) {
        float m = -INFINITY;
        for (int j = t; j < visible; j += 32) m = fmaxf(m, scores[j]);
        for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
        float s = 0;
        for (int j = t; j < visible; j += 32) {
            scores[j] = expf(scores[j] - m);
            s += scores[j];
        }
        for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
        if (t == 0) {
            shared_max = m;
            shared_sum = s;
        }
    }
    __syncthreads();
    for (int d = t; d < dim; d += blockDim.x) {
        float acc = 0;
        for (int j = 0; j < visible; ++j) acc += scores[j] * V[j * dim + d];
        out[(head * queries + row) * dim + d] = acc / shared_sum;
    }
}
