// a block a particle, a thread a bond; a broken bond is -1
#pragma optiml launch bond_damage grid(particles) block(256)
__global__ void bond_damage(const int* bonds, const int* family, int* intact, double* damage,
                            int particles) {
    __shared__ int cache[256];
    int thread = threadIdx.x;
    int bond = blockIdx.x * blockDim.x + thread;
    cache[thread] = bonds[bond] != -1 ? 1 : 0;
    __syncthreads();
    for (int i = blockDim.x / 2; i > 0; i /= 2) {
        if (thread < i) {
            cache[thread] += cache[thread + i];
        }
        __syncthreads();
    }
    if (thread == 0) {
        intact[blockIdx.x] = cache[0];
        damage[blockIdx.x] = 1.0 - (double)cache[0] / (double)family[blockIdx.x];
    }
}
