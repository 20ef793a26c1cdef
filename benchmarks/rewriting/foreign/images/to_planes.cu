// Camera pixels to linear planes for a network.
#pragma optiml launch to_planes grid(cdiv(pixels, 256)) block(256)
__global__ void to_planes(const uchar4 *rgba, float *planes, float3 mean, int pixels)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    uchar4 c = rgba[i];
    float alpha = c.w * (1.0f / 255.0f);
    planes[i] = c.x * alpha / 255.0f - mean.x;
    planes[pixels + i] = c.y * alpha / 255.0f - mean.y;
    planes[2 * pixels + i] = c.z * alpha / 255.0f - mean.z;
}
