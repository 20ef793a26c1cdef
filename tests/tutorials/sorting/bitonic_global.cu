#include <cuda_runtime.h>

/* One compare-exchange pass; the host loops over j and k. */
__global__ void bitonic_sort_step(float *values, int j, int k)
{
    unsigned int i, ixj;
    i = threadIdx.x + blockDim.x * blockIdx.x;
    ixj = i ^ j;
    if (ixj > i) {
        if ((i & k) == 0) {
            if (values[i] > values[ixj]) {
                float temp = values[i];
                values[i] = values[ixj];
                values[ixj] = temp;
            }
        }
        if ((i & k) != 0) {
            if (values[i] < values[ixj]) {
                float temp = values[i];
                values[i] = values[ixj];
                values[ixj] = temp;
            }
        }
    }
}

#pragma optiml launch bitonic_sort_step grid(4) block(64) args(values, 1, 2)
#pragma optiml launch bitonic_sort_step grid(4) block(64) args(values, 2, 4)
#pragma optiml launch bitonic_sort_step grid(4) block(64) args(values, 1, 4)
#pragma optiml launch bitonic_sort_step grid(4) block(64) args(values, 4, 8)
#pragma optiml launch bitonic_sort_step grid(4) block(64) args(values, 2, 8)
#pragma optiml launch bitonic_sort_step grid(4) block(64) args(values, 1, 8)
