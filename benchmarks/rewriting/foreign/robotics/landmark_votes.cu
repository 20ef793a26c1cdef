// The votes of sightings for landmarks, weighed by how sure each sighting is.
#pragma optiml launch landmark_votes grid(cdiv(landmarks, 64)) block(64)
__global__ void landmark_votes(const int* seen, const float* sure, const float* range, float* votes, float* near, int n, int landmarks) {
  int l = blockIdx.x * blockDim.x + threadIdx.x;
  if (l >= landmarks) return;
  float v = 0.f, close = 0.f;
  for (int s = 0; s < n; ++s) {
    if (l == seen[s]) {
      v += sure[s];
      close += sure[s] / (1.0f + range[s]);
    }
  }
  votes[l] = v;
  near[l] = close;
}
