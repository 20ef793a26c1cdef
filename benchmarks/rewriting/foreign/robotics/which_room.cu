// How badly the worst of the rooms fits that a robot may be in, after every reading.
constexpr int ROOMS = 32;
#pragma optiml launch which_room grid(cdiv(robots, 32)) block(32)
__global__ void which_room(const float* reading, const float* expected, float* evidence, int robots, int steps) {
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= robots) return;
    float belief[ROOMS];
    for (int k = 0; k < ROOMS; ++k) belief[k] = 0.0f;
    for (int t = 0; t < steps; ++t) {
        float miss = 0.0f;
        for (int k = 0; k < ROOMS; ++k) {
            float d = reading[t * robots + r] - expected[k * steps + t];
            belief[k] = 0.9f * belief[k] - d * d;
            miss = fmaxf(miss, -belief[k]);
        }
        evidence[t * robots + r] = miss;
    }
}
