// How far each row of a bitmap of obstacles is free from where a robot stands in it.
#pragma optiml launch free_ahead grid(cdiv(robots, 128)) block(128)
__global__ void free_ahead(const unsigned int* map, const int* row, const int* col, int* ahead, int robots, int width)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= robots) return;
    const unsigned int* line = map + row[k] * (width / 32);
    int c = col[k];
    while (c < width) {
        if (line[c >> 5] & (1u << (c & 31))) break;
        c++;
    }
    ahead[k] = c - col[k];
}
