// a block a record: each thread the energy of a cell, then one thread looks for the loudest
#pragma optiml launch loudest_cell grid(records) block(256)
__global__ void loudest_cell(const float* samples, int* where, float* energy, int length) {
    __shared__ float cell[256];
    const float* own = samples + blockIdx.x * length * 256;
    float e = 0.0f;
    for (int k = 0; k < length; ++k) {
        float v = own[threadIdx.x * length + k];
        e += v * v;
    }
    cell[threadIdx.x] = e;
    __syncthreads();
    if (threadIdx.x == 0) {
        int best = 0;
        float most = cell[0], sum = 0.0f;
        for (int c = 0; c < 256; ++c) {
            if (cell[c] > most) {
                most = cell[c];
                best = c;
            }
            sum += cell[c];
        }
        where[blockIdx.x] = best;
        energy[blockIdx.x] = sum;
    }
}
