// silu(gate) * up of a feed forward layer.
#pragma optiml launch swiglu grid(cdiv(hidden, 256), tokens) block(256)
__global__ void swiglu(const float *__restrict__ gate, const float *__restrict__ up, float *__restrict__ out,
                       int tokens, int hidden)
{
    int h = blockIdx.x * blockDim.x + threadIdx.x;
    int t = blockIdx.y;
    if (h >= hidden) return;
    long at = (long)t * hidden + h;
    float g = gate[at];
    out[at] = g / (1.0f + expf(-g)) * up[at];
}
