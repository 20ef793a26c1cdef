// Background along each line of a scan: the least of 41 pixels around.
__global__ void flat_field(const unsigned char* line, unsigned char* background, int width, int lines)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < lines) {
        int least = 255;
        for (int k = -20; k <= 20; k++)
            if (x + k >= 0 && x + k < width) least = min(least, (int)line[y * width + x + k]);
        background[y * width + x] = (unsigned char)least;
    }
}
#pragma optiml launch flat_field grid(cdiv(width, 64), cdiv(lines, 4)) block(64, 4)
