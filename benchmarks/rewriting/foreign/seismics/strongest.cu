/* the strongest motion so far, of each sample of a trace */
__global__ void strongest_so_far(float *peak, const float *trace, int traces, int samples)
{
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    if (t < traces) {
        float most = 0.0f;
        for (int s = 0; s < samples; s++) {
            most = fmaxf(most, fabsf(trace[s * traces + t]));
            peak[s * traces + t] = most;
        }
    }
}
#pragma optiml launch strongest_so_far grid(cdiv(traces, 64)) block(64)
