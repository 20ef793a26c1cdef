// x is [planes, height, width], out [planes, high, wide]
#pragma optiml launch max_pool grid(cdiv(planes * high * wide, 256)) block(256)
__global__ void max_pool(const float* x, float* out, int planes, int height, int width, int high,
                         int wide, int size, int stride, int padding, int dilation) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * high * wide) return;
    int col = i % wide;
    int row = i / wide % high;
    int plane = i / (wide * high);
    float best = -INFINITY;
    for (int a = 0; a < size; a++) {
        for (int b = 0; b < size; b++) {
            int y = row * stride - padding + a * dilation;
            int z = col * stride - padding + b * dilation;
            if (y >= 0 && y < height && z >= 0 && z < width) {
                float v = x[(plane * height + y) * width + z];
                if (v > best) best = v;
            }
        }
    }
    out[i] = best;
}
