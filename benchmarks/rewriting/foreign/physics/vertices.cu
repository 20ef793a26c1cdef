// Primary vertices of each event: tracks sorted along the beam, a gap begins another vertex.
#pragma optiml launch vertices grid(cdiv(events, 64)) block(64)
__global__ void vertices(const float* z, int* found, float* start, float gap, int events, int tracks) {
    int ev = blockIdx.x * blockDim.x + threadIdx.x;
    if (ev >= events) return;
    const float* along = z + ev * tracks;
    int count = 1;
    float begin = along[0];
    for (int t = 1; t < tracks; ++t) {
        if (along[t] - begin > gap) {
            begin = along[t];
            ++count;
        }
    }
    found[ev] = count;
    start[ev] = begin;
}
