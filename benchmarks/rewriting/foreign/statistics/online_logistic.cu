// Logistic regression of each stream, learned example by example; what it said before is the score.
#define FEATURES 24
__global__ void online_logistic(const float *x, const unsigned char *label, float *said, float rate, int streams, int examples)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= streams) return;
    float w[FEATURES];
    float bias = 0.0f;
    for (int f = 0; f < FEATURES; ++f) w[f] = 0.0f;
    for (int e = 0; e < examples; ++e) {
        const float *row = x + (s * examples + e) * FEATURES;
        float z = bias;
        for (int f = 0; f < FEATURES; ++f) z += w[f] * tanhf(row[f]);
        float p = 1.0f / (1.0f + expf(-z));
        float step = rate * ((label[s * examples + e] ? 1.0f : 0.0f) - p);
        for (int f = 0; f < FEATURES; ++f) w[f] += step * tanhf(row[f]);
        bias += step;
        said[s * examples + e] = p;
    }
}
#pragma optiml launch online_logistic grid(cdiv(streams, 64)) block(64)
