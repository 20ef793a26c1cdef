// How alike each question and each page are: the cosine of their vectors.
__device__ float product(const float* a, const float* b, int width)
{
    float s = 0.0f;
    for (int i = 0; i < width; i++) s += a[i] * b[i];
    return s;
}
#pragma optiml launch similarity grid(cdiv(pages, 16), cdiv(questions, 16)) block(16, 16)
__global__ void similarity(const float* question, const float* page, float* alike, int questions, int pages, int width)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x, q = blockIdx.y * blockDim.y + threadIdx.y;
    if (q < questions && p < pages) {
        const float* a = question + q * width;
        const float* b = page + p * width;
        float lengths = sqrtf(product(a, a, width)) * sqrtf(product(b, b, width));
        alike[q * pages + p] = product(a, b, width) / (lengths + 1e-8f);
    }
}
