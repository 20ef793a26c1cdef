// Clearance in each direction: the least range of 61 beams around, all around the robot.
#define SIDE 30
__global__ void clearance(const float* range, float* clear, int scans, int beams) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    int s = blockIdx.y;
    if (b >= beams) return;
    float least = 1e9f;
    for (int k = -SIDE; k <= SIDE; ++k) least = fminf(least, range[s * beams + (b + k + beams) % beams]);
    clear[s * beams + b] = least;
}
#pragma optiml launch clearance grid(cdiv(beams, 128), scans) block(128)
