// how many attributes of two rows differ: a block a pair, whose threads share the attributes
#pragma optiml zero(distance)
#pragma optiml launch hamming grid(rows, rows) block(128)
__global__ void hamming(const int* data, int* distance, int rows, int attributes) {
    int i = blockIdx.y;
    int j = blockIdx.x;
    int count = 0;
    for (int k = threadIdx.x; k < attributes; k += blockDim.x) {
        if (data[i * attributes + k] != data[j * attributes + k]) {
            count++;
        }
    }
    atomicAdd(&distance[i * rows + j], count);
}
