// Solves A x = b; a launch for each pivot would be long, so one block does it all in place.
#pragma optiml launch solve grid(1) block(16, 16)
__global__ void solve(float *A, float *x, int n)
{
    int tx = threadIdx.x, ty = threadIdx.y;
    __shared__ float pivot, column[64];
    for (int k = 0; k < n; ++k) {
        __syncthreads();
        if (tx == 0 && ty == 0) pivot = A[k * n + k];
        if (ty == 0)
            for (int i = tx; i < n; i += blockDim.x) column[i] = A[i * n + k];
        __syncthreads();
        if (ty == 0)
            for (int j = tx; j < n; j += blockDim.x) A[k * n + j] /= pivot;
        if (ty == 0 && tx == 0) x[k] /= pivot;
        __syncthreads();
        for (int i = ty; i < n; i += blockDim.y) {
            if (i == k) continue;
            for (int j = tx; j < n; j += blockDim.x) A[i * n + j] -= column[i] * A[k * n + j];
            if (tx == 0) x[i] -= column[i] * x[k];
        }
    }
}
