#pragma optiml scratch mean f4[m]
#pragma optiml launch mean_kernel grid(cdiv(m, 256)) block(256)
#pragma optiml launch reduce_kernel grid(cdiv(m, 32), cdiv(n, 8)) block(32, 8)
#pragma optiml launch covar_kernel grid(cdiv(m, 256)) block(256)
// data is [n, m]
__global__ void mean_kernel(float* mean, const float* data, int m, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < m) {
        mean[j] = 0.0f;
        for (int i = 0; i < n; i++) {
            mean[j] += data[i * m + j];
        }
        mean[j] /= n;
    }
}

__global__ void reduce_kernel(const float* mean, float* data, int m, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) {
        data[i * m + j] -= mean[j];
    }
}

__global__ void covar_kernel(float* symmat, const float* data, int m, int n) {
    int j1 = blockIdx.x * blockDim.x + threadIdx.x;
    if (j1 < m) {
        for (int j2 = j1; j2 < m; j2++) {
            symmat[j1 * m + j2] = 0.0f;
            for (int i = 0; i < n; i++) {
                symmat[j1 * m + j2] += data[i * m + j1] * data[i * m + j2];
            }
            symmat[j2 * m + j1] = symmat[j1 * m + j2];
        }
    }
}
