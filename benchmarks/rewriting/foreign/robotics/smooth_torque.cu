// Joint torques over time, seven joints side by side, averaged over the last 50 readings.
template <typename T, int N>
__global__ void smooth(const T* torque, T* smoothed, int readings, int joints) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y;
    if (t >= readings - N + 1) return;
    T sum = 0;
    for (int k = 0; k < N; k++) sum += torque[j * readings + t + k];
    smoothed[j * readings + t] = sum / N;
}
#pragma optiml launch smooth<float, 50> grid(cdiv(readings - 49, 256), joints) block(256)
