// A Gabor filter: a wave under a bell, turned by an angle that is given as its cosine and sine.
__global__ void oriented(const float *image, float *response, float c, float s, float wavelength, float sigma,
                         int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    for (int j = -7; j <= 7; j++) {
        int yy = min(max(y + j, 0), h - 1);
        for (int i = -7; i <= 7; i++) {
            int xx = min(max(x + i, 0), w - 1);
            float along = i * c + j * s;
            float bell = expf(-(i * i + j * j) / (2.0f * sigma * sigma));
            sum += image[yy * w + xx] * bell * cosf(6.2831853f * along / wavelength);
        }
    }
    response[y * w + x] = sum;
}
#pragma optiml launch oriented grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
