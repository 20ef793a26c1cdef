// Welch's t of two groups, for each of many measurements.
#define MOMENTS(array, count, mean, var)                          \
    float mean = 0.0f, var = 0.0f;                                \
    for (int i = 0; i < count; ++i) mean += array[m * count + i]; \
    mean /= count;                                                \
    for (int i = 0; i < count; ++i) {                             \
        float d = array[m * count + i] - mean;                    \
        var += d * d;                                             \
    }                                                             \
    var /= count - 1

#pragma optiml launch welch grid(cdiv(measured, 64)) block(64)
__global__ void welch(const float *treated, const float *control, float *t, int measured, int n1, int n2)
{
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= measured) return;
    MOMENTS(treated, n1, mean1, var1);
    MOMENTS(control, n2, mean2, var2);
    t[m] = (mean1 - mean2) / sqrtf(var1 / n1 + var2 / n2);
}
