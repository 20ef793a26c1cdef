// Free energy and mean energy of replicas from their sampled states, without overflow.
#pragma optiml launch boltzmann grid(cdiv(replicas, 64)) block(64)
__global__ void boltzmann(const float* energy, const float* beta, float* free_energy, float* mean_energy,
                          int replicas, int states) {
    int rep = blockIdx.x * blockDim.x + threadIdx.x;
    if (rep >= replicas) return;
    float b = beta[rep];
    float greatest = -INFINITY, z = 0.0f, ez = 0.0f;
    for (int s = 0; s < states; s++) {
        float e = energy[rep * states + s];
        float w = -b * e;
        float previous = greatest;
        greatest = fmaxf(greatest, w);
        float rescale = expf(previous - greatest);
        float p = expf(w - greatest);
        z = z * rescale + p;
        ez = ez * rescale + p * e;
    }
    free_energy[rep] = -(greatest + logf(z)) / b;
    mean_energy[rep] = ez / z;
}
