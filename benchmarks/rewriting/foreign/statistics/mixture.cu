// Log-likelihoods under a mixture of Gaussians whose covariances are diagonal.
__global__ void mixture(const float *x, const float *mean, const float *precision, const float *log_weight,
                        float *loglik, int n, int k, int d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = -INFINITY, total = 0.0f;
    for (int c = 0; c < k; c++) {
        float q = 0.0f;
        for (int j = 0; j < d; j++) {
            float z = x[i * d + j] - mean[c * d + j];
            q += z * z * precision[c * d + j];
        }
        float l = log_weight[c] - 0.5f * q;
        if (l > best) {
            total = total * expf(best - l) + 1.0f;
            best = l;
        } else {
            total += expf(l - best);
        }
    }
    loglik[i] = best + logf(total);
}
#pragma optiml launch mixture grid(cdiv(n, 128)) block(128)
