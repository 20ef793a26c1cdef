__global__ void rgb_to_grey(const uchar3 *rgb, unsigned char *grey, int width, int height)
{
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < width && y < height) {
        uchar3 p = rgb[y * width + x];
        grey[y * width + x] = (unsigned char)((77 * p.x + 150 * p.y + 29 * p.z) >> 8);
    }
}
