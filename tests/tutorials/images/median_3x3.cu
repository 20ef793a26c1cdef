#define SORT2(a, b) { if ((a) > (b)) { unsigned short t = (a); (a) = (b); (b) = t; } }

__global__ void median3x3(const unsigned short *in, unsigned short *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    unsigned short v[9];
    int k = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            int xx = x + i < 0 ? 0 : (x + i >= w ? w - 1 : x + i);
            int yy = y + j < 0 ? 0 : (y + j >= h ? h - 1 : y + j);
            v[k++] = in[yy * w + xx];
        }
    for (int i = 0; i < 5; i++)
        for (int j = i + 1; j < 9; j++) SORT2(v[i], v[j]);
    out[y * w + x] = v[4];
}
