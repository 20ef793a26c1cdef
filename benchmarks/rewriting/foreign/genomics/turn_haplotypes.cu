// Dosages from samples by variants to variants by samples.
const int TILE = 32;
const int STEP = 8;
__global__ void turn_haplotypes(const float *dosage, float *turned, int samples, int variants)
{
    __shared__ float block[TILE][TILE];
    int v = blockIdx.x * TILE + threadIdx.x;
    int s = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP)
        if (v < variants && s + k < samples)
            block[threadIdx.y + k][threadIdx.x] = 2.0f - dosage[(s + k) * variants + v];
    __syncthreads();
    int to_s = blockIdx.y * TILE + threadIdx.x;
    int to_v = blockIdx.x * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP)
        if (to_s < samples && to_v + k < variants)
            turned[(to_v + k) * samples + to_s] = block[threadIdx.x][threadIdx.y + k];
}
#pragma optiml launch turn_haplotypes grid(cdiv(variants, 32), cdiv(samples, 32)) block(32, 8)
