// Every clip to the same peak, in two launches.
#pragma optiml scratch peak float[clips]
#pragma optiml launch find_peaks grid(cdiv(clips, 64)) block(64)
#pragma optiml launch scale_clips grid(cdiv(samples, 32), cdiv(clips, 8)) block(32, 8)
__global__ void find_peaks(const float *clip, float *peak, int clips, int samples)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < clips) {
        float loudest = 0.0f;
        for (int s = 0; s < samples; s++)
            loudest = fmaxf(loudest, fabsf(clip[c * samples + s]));
        peak[c] = loudest;
    }
}
__global__ void scale_clips(const float *clip, const float *peak, float *out, float target, int clips, int samples)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    int c = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < clips && s < samples)
        out[c * samples + s] = clip[c * samples + s] * (target / (peak[c] + 1e-9f));
}
