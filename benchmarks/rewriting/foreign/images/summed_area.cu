// Second pass of a summed area table: the rows are summed already, now down the columns.
#pragma optiml launch down_columns grid(cdiv(width, 128)) block(128)
__global__ void down_columns(float* table, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width) {
        float* cell = table + x;
        for (int y = 1; y < height; y++) {
            cell[width] = cell[width] + cell[0];
            cell += width;
        }
    }
}
