// Contrastive loss: similarities over the temperature, exponentials of them, sums of the rows.
#pragma optiml scratch weight f4[rows * cols]
#pragma optiml launch soften grid(cdiv(rows * cols, 256)) block(256)
#pragma optiml launch total grid(cdiv(rows, 64)) block(64)
__global__ void soften(const float *similarity, float *weight, float temperature, int rows, int cols)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) weight[i] = expf((similarity[i] - 1.0f) / temperature);
}
__global__ void total(const float *weight, float *loss, int rows, int cols)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += weight[r * cols + c];
    loss[r] = -logf(weight[r * cols + r % cols] / sum);
}
