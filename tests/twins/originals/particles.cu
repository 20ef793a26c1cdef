struct Particle {
    float x, y, z;
    float speed;
};
#pragma optiml launch particles grid(cdiv(n, 64)) block(64)
__global__ void particles(const Particle* items, float* energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float height = items[i].z;
        float speed = items[i].speed;
        energy[i] = 0.5f * speed * speed + 9.81f * height;
    }
}
