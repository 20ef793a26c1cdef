// softmax over the channels of each pixel; x is [images, channels, pixels]
#pragma optiml launch softmax_channels grid(cdiv(images * pixels, 256)) block(256)
__global__ void softmax_channels(const float* x, float* out, int images, int channels, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= images * pixels) return;
    int image = i / pixels;
    int pixel = i % pixels;
    const float* in = x + image * channels * pixels + pixel;
    float* result = out + image * channels * pixels + pixel;
    float top = -INFINITY;
    for (int c = 0; c < channels; c++) {
        top = fmaxf(top, in[c * pixels]);
    }
    float sum = 0.0f;
    for (int c = 0; c < channels; c++) {
        sum += expf(in[c * pixels] - top);
    }
    for (int c = 0; c < channels; c++) {
        result[c * pixels] = expf(in[c * pixels] - top) / sum;
    }
}
