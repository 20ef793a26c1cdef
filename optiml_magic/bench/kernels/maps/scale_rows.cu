// diag(a) times b, without the zeros: a is [n], b and c are [n, m]
#pragma optiml launch scale_rows grid(cdiv(n * m, 256)) block(256)
__global__ void scale_rows(const float* a, const float* b, float* c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * m) {
        int row = i / m;
        c[i] = a[row] * b[i];
    }
}
