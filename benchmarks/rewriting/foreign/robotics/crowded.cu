// Cells of an occupancy grid by how crowded it is around them, robots' width and more.
#pragma optiml launch crowded grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
__global__ void crowded(const unsigned char* occupied, float* share, int rows, int cols, int reach)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= rows || c >= cols) return;
    int full = 0, seen = 0;
    for (int i = r - reach; i <= r + reach; i++)
        for (int j = c - reach; j <= c + reach; j++)
            if (i >= 0 && j >= 0 && i < rows && j < cols) {
                full += occupied[i * cols + j] > 127;
                seen++;
            }
    share[r * cols + c] = (float)full / seen;
}
