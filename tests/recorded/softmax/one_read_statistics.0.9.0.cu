#pragma optiml scratch done i4[1]
#pragma optiml zero(done)
#pragma optiml launch waiting_softmax grid(cdiv(rows, 64)) block(64)
__global__ void waiting_softmax(const float* x, float* out, volatile int* done, int rows, int cols) {
    int row = blockIdx.x * 64 + threadIdx.x;
    while (done[0] < (int)gridDim.x) {}
    if (row < rows) out[row * cols] = x[row * cols];
}
