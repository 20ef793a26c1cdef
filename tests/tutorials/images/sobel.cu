typedef unsigned char uchar;

__global__ void sobel(const uchar *__restrict__ src, uchar *__restrict__ dst, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        dst[y * width + x] = 0;
        return;
    }
    const uchar *p = src + y * width + x;
    const int up = -width, down = width;
    int gx = (p[up + 1] + 2 * p[1] + p[down + 1]) - (p[up - 1] + 2 * p[-1] + p[down - 1]);
    int gy = (p[down - 1] + 2 * p[down] + p[down + 1]) - (p[up - 1] + 2 * p[up] + p[up + 1]);
    int magnitude = abs(gx) + abs(gy);
    dst[y * width + x] = magnitude > 255 ? 255 : magnitude;
}
