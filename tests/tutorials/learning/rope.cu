// Rotary position embedding in place, one thread for each pair.
__global__ void rope(float *x, const int *positions, int tokens, int half_dim)
{
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    int token = blockIdx.y * blockDim.y + threadIdx.y;
    if (pair < half_dim && token < tokens) {
        float inv_freq = powf(10000.0f, -(float)pair / half_dim);
        float sin_t, cos_t;
        sincosf(positions[token] * inv_freq, &sin_t, &cos_t);
        float *row = x + token * 2 * half_dim;
        float a = row[pair], b = row[pair + half_dim];
        row[pair] = a * cos_t - b * sin_t;
        row[pair + half_dim] = a * sin_t + b * cos_t;
    }
}
