inline __device__ float4 operator*(float s, float4 v) { return make_float4(s * v.x, s * v.y, s * v.z, s * v.w); }
inline __device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

#pragma optiml launch over grid(cdiv(pixels, 128)) block(128)
__global__ void over(const float4 *front, const float4 *back, float4 *out, int pixels)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pixels) {
        float4 f = front[i];
        float4 c = f.w * f + (1.0f - f.w) * back[i];
        c.w = f.w + (1.0f - f.w) * back[i].w;
        out[i] = c;
    }
}
