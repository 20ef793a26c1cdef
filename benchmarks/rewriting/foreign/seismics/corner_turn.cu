// Time slices of a shot: from trace order to time order, two floats (the two components) at once.
__global__ void corner_turn(const float2 *trace_order, float2 *time_order, int traces, int samples)
{
    __shared__ float2 buf[16][16];
    int s = blockIdx.x * 16 + threadIdx.x;
    int t = blockIdx.y * 16 + threadIdx.y;
    if (s < samples && t < traces) buf[threadIdx.y][threadIdx.x] = trace_order[t * samples + s];
    __syncthreads();
    s = blockIdx.x * 16 + threadIdx.y;
    t = blockIdx.y * 16 + threadIdx.x;
    if (s < samples && t < traces) time_order[s * traces + t] = buf[threadIdx.x][threadIdx.y];
}
#pragma optiml launch corner_turn grid(cdiv(samples, 16), cdiv(traces, 16)) block(16, 16)
