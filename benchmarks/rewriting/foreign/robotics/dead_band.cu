// What a sensor would have sent: a reading is sent where it is far from the one sent before.
__global__ void dead_band(const float* reading, int* sent, float* held, float band, int sensors, int length) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= sensors) return;
    float last = reading[s * length];
    int count = 1;
    for (int t = 1; t < length; t++) {
        float x = reading[s * length + t];
        if (fabsf(x - last) > band) {
            last = x;
            count++;
        }
    }
    sent[s] = count;
    held[s] = last;
}
#pragma optiml launch dead_band grid(cdiv(sensors, 64)) block(64)
