// Causal attention in one pass, a template as in a library: each query sees the keys up to its own.
#define HEAD 64
template <typename T, int WIDTH>
__global__ void attend_before(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                              T* __restrict__ out, int length, T scale)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= length) return;
    const T* mine = q + ((size_t)blockIdx.y * length + at) * WIDTH;
    const T* keys = k + (size_t)blockIdx.y * length * WIDTH;
    const T* values = v + (size_t)blockIdx.y * length * WIDTH;
    T acc[WIDTH];
    for (int d = 0; d < WIDTH; d++) acc[d] = 0;
    T m = -INFINITY, l = 0;
    for (int j = 0; j <= at; j++) {
        T s = 0;
        for (int d = 0; d < WIDTH; d++) s += mine[d] * keys[j * WIDTH + d];
        s *= scale;
        T next = fmaxf(m, s), shrink = expf(m - next), p = expf(s - next);
        l = l * shrink + p;
        for (int d = 0; d < WIDTH; d++) acc[d] = acc[d] * shrink + p * values[j * WIDTH + d];
        m = next;
    }
    T* to = out + ((size_t)blockIdx.y * length + at) * WIDTH;
    for (int d = 0; d < WIDTH; d++) to[d] = acc[d] / l;
}
#pragma optiml launch attend_before<float, HEAD> grid(cdiv(length, 128), heads) block(128)
