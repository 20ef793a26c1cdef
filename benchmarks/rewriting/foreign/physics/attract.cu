// bodies that attract each other, their masses beside their places
#pragma optiml launch attract grid(cdiv(n, 256)) block(256)
__global__ void attract(const float4* body, float3* pull, int n, float softening) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    float4 own = body[i];
    for (int j = 0; j < n; j++) {
        float4 other = body[j];
        float3 d = make_float3(other.x - own.x, other.y - own.y, other.z - own.z);
        float near = 1.0f / sqrtf(d.x * d.x + d.y * d.y + d.z * d.z + softening);
        float weight = other.w * near * near * near;
        sum.x += d.x * weight;
        sum.y += d.y * weight;
        sum.z += d.z * weight;
    }
    pull[i] = sum;
}
