// Stress in an absorbing medium by relaxation mechanisms, each with a memory of the strain.
#define MECHANISMS 12
#pragma optiml launch relax grid(cdiv(cells, 32)) block(32)
__global__ void relax(const float *strain, const float *decay, const float *strength, float *stress, int cells, int nt)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    float memory[MECHANISMS];
    for (int l = 0; l < MECHANISMS; l++) memory[l] = 0.0f;
    for (int it = 0; it < nt; it++) {
        float e = strain[it * cells + c];
        float s = e;
        for (int l = 0; l < MECHANISMS; l++) {
            memory[l] = decay[c * MECHANISMS + l] * memory[l] + strength[c * MECHANISMS + l] * e;
            s -= memory[l];
        }
        stress[it * cells + c] = s;
    }
}
