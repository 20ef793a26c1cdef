// Non-local means: patches, one a row, become means of all patches, by how much these are like them.
#define PIX 49
__global__ void patch_means(const float *patches, float *denoised, int count, float h)
{
    int p = threadIdx.x + blockIdx.x * blockDim.x;
    if (p >= count)
        return;
    float sum[PIX], weights = 0.0f;
    for (int i = 0; i < PIX; i++)
        sum[i] = 0.0f;
    for (int other = 0; other < count; other++) {
        float dist = 0.0f;
        for (int i = 0; i < PIX; i++) {
            float diff = patches[p * PIX + i] - patches[other * PIX + i];
            dist += diff * diff;
        }
        float w = expf(-dist / (h * h));
        weights += w;
        for (int i = 0; i < PIX; i++)
            sum[i] += w * patches[other * PIX + i];
    }
    for (int i = 0; i < PIX; i++)
        denoised[p * PIX + i] = sum[i] / weights;
}
#pragma optiml launch patch_means grid(cdiv(count, 128)) block(128)
