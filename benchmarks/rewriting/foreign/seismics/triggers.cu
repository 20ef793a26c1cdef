// Events of each station: on above one level, off below another.
#pragma optiml launch triggers grid(cdiv(stations, 64)) block(64)
__global__ void triggers(const float *level, int *events, int *longest, float on, float off, int stations, int samples)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= stations) return;
    int active = 0, since = 0, count = 0, most = 0;
    for (int t = 0; t < samples; ++t) {
        float v = level[s * samples + t];
        if (active ? v < off : v > on) {
            if (active && t - since > most) most = t - since;
            active = !active;
            count += active;
            since = t;
        }
    }
    events[s] = count;
    longest[s] = most;
}
