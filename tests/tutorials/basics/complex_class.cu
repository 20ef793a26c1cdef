#include <cuda/std/complex>

template <typename T>
__device__ cuda::std::complex<T> power(cuda::std::complex<T> z, unsigned k)
{
    cuda::std::complex<T> result(1);
    while (k) {
        if (k & 1) result *= z;
        z *= z;
        k >>= 1;
    }
    return result;
}

#pragma optiml launch complex_power grid(cdiv(n, 64)) block(64)
__global__ void complex_power(const double2 *z, double2 *out, unsigned k, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        auto w = power(cuda::std::complex<double>(z[i].x, z[i].y), k);
        out[i] = make_double2(w.real(), w.imag());
    }
}
