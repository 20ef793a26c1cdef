#pragma optiml scratch c f4[ni * nj]
#pragma optiml launch first grid(cdiv(nj, 32), cdiv(ni, 8)) block(32, 8)
#pragma optiml launch second grid(cdiv(nl, 32), cdiv(ni, 8)) block(32, 8)
__global__ void first(const float* a, const float* b, float* c, int ni, int nj, int nk) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < ni && j < nj) {
        float sum = 0.0f;
        for (int k = 0; k < nk; k++) {
            sum += a[i * nk + k] * b[k * nj + j];
        }
        c[i * nj + j] = sum;
    }
}

__global__ void second(const float* c, const float* d, float* e, int ni, int nj, int nl) {
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < ni && l < nl) {
        float sum = 0.0f;
        for (int j = 0; j < nj; j++) {
            sum += c[i * nj + j] * d[j * nl + l];
        }
        e[i * nl + l] = sum;
    }
}
