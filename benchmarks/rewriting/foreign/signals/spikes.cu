// Spikes of electrodes: above a threshold, and not within the refractory time of the last one.
#pragma optiml launch spikes grid(cdiv(electrodes, 32)) block(32)
__global__ void spikes(const float* voltage, const float* threshold, int* count, int* latest, int refractory,
                       int electrodes, int length)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= electrodes) return;
    int last = -refractory - 1;
    int n = 0;
    float limit = threshold[e];
    for (int t = 0; t < length; ++t) {
        if (voltage[e * length + t] > limit && t - last > refractory) {
            last = t;
            ++n;
        }
    }
    count[e] = n;
    latest[e] = last;
}
