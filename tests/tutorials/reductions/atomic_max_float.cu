// Maximum of floats and of doubles with atomicCAS, as before there were atomics for them.
__device__ float atomicMaxFloat(float *address, float val)
{
    int *address_as_i = (int *)address;
    int old = *address_as_i, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_i, assumed, __float_as_int(fmaxf(val, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ double atomicMaxDouble(double *address, double val)
{
    unsigned long long int *address_as_ull = (unsigned long long int *)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed,
                        __double_as_longlong(fmax(val, __longlong_as_double(assumed))));
    } while (assumed != old);
    return __longlong_as_double(old);
}

#pragma optiml init(max_f) = -1e30
#pragma optiml init(max_d) = -1e300
#pragma optiml launch maxima grid(cdiv(n, 64)) block(64)
__global__ void maxima(const float *x, const double *y, float *max_f, double *max_d, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicMaxFloat(max_f, x[i]);
        atomicMaxDouble(max_d, y[i]);
    }
}
