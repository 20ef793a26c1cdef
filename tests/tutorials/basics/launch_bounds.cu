#define THREADS 192

__device__ float newton_cbrt(float x)
{
    float y = x;
    for (int step = 0; step < 12; ++step)
        y -= (y * y * y - x) / (3.0f * y * y);
    return y;
}

#pragma optiml launch cube_root grid(cdiv(n, 192)) block(192)
__global__ void __launch_bounds__(THREADS, 2) cube_root(const float *__restrict__ x, float *__restrict__ y, int n)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) y[i] = newton_cbrt(x[i]);
}
