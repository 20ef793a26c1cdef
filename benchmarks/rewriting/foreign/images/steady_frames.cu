// Frames of a film turned by one small angle, all alike; a quadratic spline of three by three pixels.
__device__ float quadratic(float t)
{
    t = fabsf(t);
    return t < 0.5f ? 0.75f - t * t : t < 1.5f ? 0.5f * (1.5f - t) * (1.5f - t) : 0.0f;
}

__global__ void steady_frames(const float *film, float *steady, float cosine, float sine, int w, int h, int frames)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float u = fminf(fmaxf(cosine * x - sine * y, 1.0f), w - 2.0f);
    float v = fminf(fmaxf(sine * x + cosine * y, 1.0f), h - 2.0f);
    int cx = (int)(u + 0.5f), cy = (int)(v + 0.5f);
    for (int f = 0; f < frames; ++f) {
        float sum = 0.0f;
        for (int j = -1; j <= 1; ++j) {
            float across = 0.0f;
            for (int i = -1; i <= 1; ++i) across += quadratic(u - (cx + i)) * film[(f * h + cy + j) * w + cx + i];
            sum += quadratic(v - (cy + j)) * across;
        }
        steady[(f * h + y) * w + x] = sum;
    }
}
#pragma optiml launch steady_frames grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
