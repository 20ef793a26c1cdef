// Queries and their scale by head: every element finds the root mean square of its head again.
__global__ void query_norm(const float *q, const float *scale, float *out, int tokens, int heads, int dim)
{
    int d = threadIdx.x + blockIdx.x * blockDim.x;
    int h = blockIdx.y;
    int t = blockIdx.z;
    if (d >= dim) return;
    const float *head = q + (t * heads + h) * dim;
    float squares = 0.0f;
    for (int i = 0; i < dim; i++) squares += head[i] * head[i];
    out[(t * heads + h) * dim + d] = head[d] * rsqrtf(squares / dim + 1e-6f) * scale[d];
}
#pragma optiml launch query_norm grid(cdiv(dim, 128), heads, tokens) block(128)
