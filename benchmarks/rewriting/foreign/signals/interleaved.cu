// Power of one of four interleaved antennas in each block of a recording.
__global__ void interleaved(const float* stream, float* power, int antenna, int blocks, int size)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= blocks) return;
    float sum = 0.0f;
    for (int i = 0; i < size; ++i) {
        if (i % 4 == antenna) {
            float v = stream[i * blocks + b];
            sum += v * v;
        }
    }
    power[b] = sum;
}
#pragma optiml launch interleaved grid(cdiv(blocks, 128)) block(128)
