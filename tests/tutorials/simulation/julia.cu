#define DIM 48

struct cuComplexD {
    double r, i;
    __device__ cuComplexD(double a, double b) : r(a), i(b) {}
    __device__ double magnitude2(void) { return r * r + i * i; }
    __device__ cuComplexD operator*(const cuComplexD &a) { return cuComplexD(r * a.r - i * a.i, i * a.r + r * a.i); }
    __device__ cuComplexD operator+(const cuComplexD &a) { return cuComplexD(r + a.r, i + a.i); }
};

__device__ int julia(int x, int y)
{
    const double scale = 1.5;
    double jx = scale * (double)(DIM / 2 - x) / (DIM / 2);
    double jy = scale * (double)(DIM / 2 - y) / (DIM / 2);
    cuComplexD c(-0.8, 0.156);
    cuComplexD a(jx, jy);
    for (int i = 0; i < 200; i++) {
        a = a * a + c;
        if (a.magnitude2() > 1000) return 0;
    }
    return 1;
}

#pragma optiml launch kernel grid(48, 48) block(1)
__global__ void kernel(unsigned char *ptr)
{
    int x = blockIdx.x;
    int y = blockIdx.y;
    int offset = x + y * gridDim.x;
    int juliaValue = julia(x, y);
    ptr[offset * 4 + 0] = 255 * juliaValue;
    ptr[offset * 4 + 1] = 0;
    ptr[offset * 4 + 2] = 0;
    ptr[offset * 4 + 3] = 255;
}
