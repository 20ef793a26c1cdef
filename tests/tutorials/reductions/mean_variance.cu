// Welford's running mean and variance, merged pairwise: a reduction of a struct.
struct Moments {
    double count, mean, m2;
};

__device__ Moments merge(const Moments &a, const Moments &b)
{
    Moments r;
    r.count = a.count + b.count;
    if (r.count == 0) return {0, 0, 0};
    double delta = b.mean - a.mean;
    r.mean = a.mean + delta * b.count / r.count;
    r.m2 = a.m2 + b.m2 + delta * delta * a.count * b.count / r.count;
    return r;
}

#pragma optiml launch mean_variance grid(rows) block(64)
__global__ void mean_variance(const float *x, double *mean, double *variance, int rows, int cols)
{
    __shared__ Moments s[64];
    const float *row = x + blockIdx.x * cols;
    Moments m = {0, 0, 0};
    for (int j = threadIdx.x; j < cols; j += 64) {
        m.count += 1;
        double d = row[j] - m.mean;
        m.mean += d / m.count;
        m.m2 += d * (row[j] - m.mean);
    }
    s[threadIdx.x] = m;
    __syncthreads();
    for (int k = 32; k > 0; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] = merge(s[threadIdx.x], s[threadIdx.x + k]);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = s[0].mean;
        variance[blockIdx.x] = s[0].m2 / s[0].count;
    }
}
