// Invariant mass of pairs of muons, from transverse momentum and angles.
#define MUON 0.105658f
#pragma optiml launch invariant_mass grid(cdiv(pairs, 256)) block(256)
__global__ void invariant_mass(const float* pt1, const float* eta1, const float* phi1, const float* pt2,
                               const float* eta2, const float* phi2, float* mass, int pairs) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x) {
        float dphi = phi1[i] - phi2[i];
        float deta = eta1[i] - eta2[i];
        float m2 = 2.0f * pt1[i] * pt2[i] * (coshf(deta) - cosf(dphi));
        mass[i] = sqrtf(fmaxf(m2, 0.0f) + 2.0f * MUON * MUON);
    }
}
