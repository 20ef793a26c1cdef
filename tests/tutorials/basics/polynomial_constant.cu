// Horner's scheme over a constant table; every thread reads the same coefficient.
#define DEGREE 6
__constant__ double coefficients[DEGREE + 1] = {1.0, -0.5, 0.25, 2.0, -1.0, 0.125, 3.0};

__global__ void horner(const double *x, double *y, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double sum = coefficients[DEGREE];
#pragma unroll
        for (int k = DEGREE - 1; k >= 0; --k)
            sum = sum * x[i] + coefficients[k];
        y[i] = sum;
    }
}
