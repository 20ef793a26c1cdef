// A stream moved in frequency: each complex sample times that of an oscillator.
__global__ void rotate_iq(const float2* __restrict__ iq, const float2* __restrict__ oscillator, float2* __restrict__ out, int n)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) {
        float2 a = iq[i], b = oscillator[i];
        out[i] = make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    }
}
#pragma optiml launch rotate_iq grid(cdiv(n, 512)) block(512)
