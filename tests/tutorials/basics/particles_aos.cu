// An array of structures: position, velocity and mass side by side.
struct Particle {
    float3 position;
    float3 velocity;
    float mass;
};

#pragma optiml launch drift grid(cdiv(n, 64)) block(64)
__global__ void drift(const Particle *particles, float *energy, float dt, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = particles[i];
    p.position.y += dt * p.velocity.y;
    float speed2 = p.velocity.x * p.velocity.x + p.velocity.y * p.velocity.y + p.velocity.z * p.velocity.z;
    energy[i] = p.mass * (0.5f * speed2 + 9.81f * p.position.y);
}
