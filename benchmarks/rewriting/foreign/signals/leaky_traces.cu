// Traces of synapses fade with constants of their own; the neuron adds them up at each step.
typedef float real;
const int SYNAPSES = 20;
__global__ void leaky_traces(const real* spikes, const real* leak, const real* weight, real* potential, int neurons, int steps)
{
    const int n = threadIdx.x + blockIdx.x * blockDim.x;
    if (n >= neurons) return;
    real trace[SYNAPSES];
#pragma unroll
    for (int s = 0; s < SYNAPSES; s++) trace[s] = 0;
    for (int t = 0; t < steps; t++)
    {
        real v = 0;
#pragma unroll
        for (int s = 0; s < SYNAPSES; s++)
        {
            trace[s] = trace[s] / (1 + leak[s] * leak[s]) + spikes[(n * steps + t) * SYNAPSES + s];
            v += weight[n * SYNAPSES + s] * trace[s];
        }
        potential[n * steps + t] = tanhf(v);
    }
}
#pragma optiml launch leaky_traces grid(cdiv(neurons, 64)) block(64)
