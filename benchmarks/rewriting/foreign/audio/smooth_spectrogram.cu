// A spectrogram smoothed over time and frequency before peaks are picked; triangular in both.
#pragma optiml launch smooth_spectrogram grid(cdiv(bands, 64), cdiv(frames, 4)) block(64, 4)
__global__ void smooth_spectrogram(const float *power, float *smooth, int frames, int bands, int reach)
{
    int band = blockIdx.x * blockDim.x + threadIdx.x;
    int frame = blockIdx.y * blockDim.y + threadIdx.y;
    if (band >= bands || frame >= frames) return;
    float level = 0.0f;
    for (int t = -reach; t <= reach; t++) {
        for (int f = -reach; f <= reach; f++) {
            float p = 0.0f;
            if (frame + t >= 0 && frame + t < frames && band + f >= 0 && band + f < bands)
                p = power[(frame + t) * bands + band + f];
            level += (reach + 1 - abs(t)) * (reach + 1 - abs(f)) * log1pf(p);
        }
    }
    float side = (reach + 1) * (reach + 1);
    smooth[frame * bands + band] = level / (side * side);
}
