// Correlation of a template, less its mean, with every place of a picture.
__global__ void template_match(const float *picture, const float *pattern, float *match, int w, int h, int side)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x + side > w || y + side > h) return;
    float mean = 0.0f;
    for (int k = 0; k < side * side; k++) mean += pattern[k];
    mean /= side * side;
    float sum = 0.0f;
    for (int j = 0; j < side; j++)
        for (int i = 0; i < side; i++) sum += picture[(y + j) * w + x + i] * (pattern[j * side + i] - mean);
    match[y * w + x] = sum;
}
#pragma optiml launch template_match grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
