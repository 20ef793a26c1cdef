// The charge of each residue of a protein, from its atoms.
#pragma optiml launch charge_by_residue grid((residues + 31) / 32) block(32)
__global__ void charge_by_residue(const short* residue, const float* charge, float* total, int atoms, int residues) {
  int r = blockIdx.x * 32 + threadIdx.x;
  if (r < residues) {
    float q = 0.0f;
    for (int a = 0; a < atoms; a++) if (residue[a] == r) q = q + charge[a];
    total[r] = q;
  }
}
