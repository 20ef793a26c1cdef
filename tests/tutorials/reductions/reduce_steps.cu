// The classic steps of the shared-memory reduction, one kernel with the step as a template argument.
// Every lane reads before any of its warp writes: `s[tid] += s[tid + 16]` relies on lockstep.
template <unsigned int blockSize>
__device__ void warp_reduce(volatile float *s, unsigned int tid)
{
    float sum = s[tid];
    if (blockSize >= 64) { sum += s[tid + 32]; __syncwarp(); s[tid] = sum; __syncwarp(); }
    if (blockSize >= 32) { sum += s[tid + 16]; __syncwarp(); s[tid] = sum; __syncwarp(); }
    if (blockSize >= 16) { sum += s[tid + 8]; __syncwarp(); s[tid] = sum; __syncwarp(); }
    if (blockSize >= 8) { sum += s[tid + 4]; __syncwarp(); s[tid] = sum; __syncwarp(); }
    if (blockSize >= 4) { sum += s[tid + 2]; __syncwarp(); s[tid] = sum; __syncwarp(); }
    if (blockSize >= 2) { sum += s[tid + 1]; __syncwarp(); s[tid] = sum; }
}

// 0: interleaved addressing with a divergent branch.
__global__ void reduce0(const float *g_in, float *g_out)
{
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = g_in[i];
    __syncthreads();
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

// 1: interleaved addressing with bank conflicts.
__global__ void reduce1(const float *g_in, float *g_out)
{
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    sdata[tid] = g_in[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        int index = 2 * s * tid;
        if (index < blockDim.x) sdata[index] += sdata[index + s];
        __syncthreads();
    }
    if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

// 2: sequential addressing.
__global__ void reduce2(const float *g_in, float *g_out)
{
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    sdata[tid] = g_in[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

// 3: the first addition during the load.
__global__ void reduce3(const float *g_in, float *g_out)
{
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    sdata[tid] = g_in[i] + g_in[i + blockDim.x];
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

// 4: the last warp unrolled.
template <unsigned int blockSize>
__global__ void reduce4(const float *g_in, float *g_out)
{
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    sdata[tid] = g_in[i] + g_in[i + blockDim.x];
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 32; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid < 32) warp_reduce<blockSize>(sdata, tid);
    if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

// 5: completely unrolled; 6: several elements a thread.
template <unsigned int blockSize>
__global__ void reduce6(const float *g_in, float *g_out, unsigned int n)
{
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockSize * 2) + tid;
    unsigned int gridSize = blockSize * 2 * gridDim.x;
    float sum = 0;
    while (i < n) {
        sum += g_in[i];
        if (i + blockSize < n) sum += g_in[i + blockSize];
        i += gridSize;
    }
    sdata[tid] = sum;
    __syncthreads();
    if (blockSize >= 512) { if (tid < 256) { sdata[tid] += sdata[tid + 256]; } __syncthreads(); }
    if (blockSize >= 256) { if (tid < 128) { sdata[tid] += sdata[tid + 128]; } __syncthreads(); }
    if (blockSize >= 128) { if (tid < 64) { sdata[tid] += sdata[tid + 64]; } __syncthreads(); }
    if (tid < 32) warp_reduce<blockSize>(sdata, tid);
    if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

#pragma optiml launch reduce0 grid(n / 128) block(128) shared(128 * 4) args(x, sums0)
#pragma optiml launch reduce1 grid(n / 128) block(128) shared(128 * 4) args(x, sums1)
#pragma optiml launch reduce2 grid(n / 128) block(128) shared(128 * 4) args(x, sums2)
#pragma optiml launch reduce3 grid(n / 256) block(128) shared(128 * 4) args(x, sums3)
#pragma optiml launch reduce4<128> grid(n / 256) block(128) shared(128 * 4) args(x, sums4)
#pragma optiml launch reduce6<128> grid(4) block(128) shared(128 * 4) args(x, sums6, n)
