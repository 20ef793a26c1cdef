// Gain of each trace that grows as the signal fades: an envelope goes down the trace with it.
#pragma optiml launch gain grid(cdiv(traces, 64)) block(64)
__global__ void gain(float* gather, int traces, int samples, float decay) {
    unsigned int trace = blockIdx.x * blockDim.x + threadIdx.x;
    if (trace >= traces) return;
    float envelope = 1.0f;
    for (int t = 0; t < samples; t++) {
        float* sample = &gather[t * traces + trace];
        envelope = decay * envelope + (1.0f - decay) * fabsf(*sample);
        *sample = *sample / (envelope + 0.01f);
    }
}
