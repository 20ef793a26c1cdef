#pragma optiml launch arrays_to_structs grid(cdiv(n, 256)) block(256)
__global__ void arrays_to_structs(const float* x, const float* y, const float* z, const float* mass,
                                  float* particles, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    particles[4 * i + 0] = x[i];
    particles[4 * i + 1] = y[i];
    particles[4 * i + 2] = z[i];
    particles[4 * i + 3] = mass[i];
}
