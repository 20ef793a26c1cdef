// Nadaraya-Watson: several responses at each place, from the same distances to what was observed.
__global__ void kernel_regression(const float *place, const float *seen, const float *response, float *fitted,
                                  float width, int places, int observed, int responses)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    int p = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= responses || p >= places) return;
    float above = 0.0f, below = 0.0f;
    for (int i = 0; i < observed; i++) {
        float distance = 0.0f;
        for (int d = 0; d < 8; d++) {
            float apart = place[p * 8 + d] - seen[i * 8 + d];
            distance += apart * apart;
        }
        float w = expf(-distance / width);
        above += w * response[i * responses + r];
        below += w;
    }
    fitted[p * responses + r] = above / below;
}
#pragma optiml launch kernel_regression grid(cdiv(responses, 32), cdiv(places, 4)) block(32, 4)
