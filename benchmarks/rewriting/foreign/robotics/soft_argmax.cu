// Where a keypoint is: the softmax of its heat map, and the mean of places by it.
#pragma optiml launch soft_argmax grid(cdiv(maps, 64)) block(64)
__global__ void soft_argmax(const float* heat, float* px, float* py, int maps, int w, int h) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= maps) return;
    const float* mine = heat + k * w * h;
    float peak = -1e38f, sum = 0.0f, sum_x = 0.0f, sum_y = 0.0f;
    for (int i = 0; i < w * h; ++i) {
        float v = mine[i];
        float grown = fmaxf(peak, v);
        float old = expf(peak - grown);
        float e = expf(v - grown);
        sum = sum * old + e;
        sum_x = sum_x * old + e * (i % w);
        sum_y = sum_y * old + e * (i / w);
        peak = grown;
    }
    px[k] = sum_x / sum;
    py[k] = sum_y / sum;
}
