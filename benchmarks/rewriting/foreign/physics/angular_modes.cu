// Modes of small patches of a sphere, with a weight for each ring.
#pragma optiml launch angular_modes grid(w / 8, h / 8) block(8, 8)
__global__ void angular_modes(const float* patch, float* mode, int w, int h) {
  int m = threadIdx.x, l = threadIdx.y;
  int px = blockIdx.x * 8, py = blockIdx.y * 8;
  float sum = 0.0f;
  for (int ring = 0; ring < 8; ring++) {
    for (int at = 0; at < 8; at++) {
      sum += patch[(py + ring) * w + px + at] * cosf(m * at * 0.78539816f) * expf(-0.1f * l * ring);
    }
  }
  mode[(py + l) * w + px + m] = sum;
}
