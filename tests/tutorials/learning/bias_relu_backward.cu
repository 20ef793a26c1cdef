// Gradient of a bias: a column sum under a mask, with float atomics.
#pragma optiml zero(dbias)
#pragma optiml launch bias_backward grid(cdiv(cols, 32), cdiv(rows, 32)) block(32, 8)
__global__ void bias_backward(const float *dy, const float *y, float *dx, float *dbias, int rows, int cols)
{
    int col = blockIdx.x * 32 + threadIdx.x;
    if (col >= cols) return;
    float sum = 0;
    for (int r = blockIdx.y * 32 + threadIdx.y; r < rows && r < (blockIdx.y + 1) * 32; r += 8) {
        float g = y[r * cols + col] > 0.0f ? dy[r * cols + col] : 0.0f;
        dx[r * cols + col] = g;
        sum += g;
    }
    atomicAdd(&dbias[col], sum);
}
