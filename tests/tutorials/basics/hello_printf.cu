#include <stdio.h>

#pragma optiml launch hello grid(2) block(4)
__global__ void hello(int *who)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    printf("Hello from block %d, thread %d (%s, %.2f)\n", blockIdx.x, threadIdx.x, id % 2 ? "odd" : "even", id * 0.5);
    who[id] = id;
}
