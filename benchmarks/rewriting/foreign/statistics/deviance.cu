// Deviance residuals of a Poisson model.
#pragma optiml launch deviance grid(cdiv(n, 256)) block(256)
__global__ void deviance(const int *count, const float *eta, float *residual, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = (float)count[i];
    float mu = expf(eta[i]);
    float d = y > 0.0f ? y * logf(y / mu) - (y - mu) : mu;
    residual[i] = copysignf(sqrtf(2.0f * fmaxf(d, 0.0f)), y - mu);
}
