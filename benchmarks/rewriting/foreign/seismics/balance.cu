// Traces to unit energy: squares summed up by trace, then each sample over the root.
#pragma optiml scratch energy f4[ntr]
#pragma optiml launch trace_energy grid(cdiv(ntr, 64)) block(64)
#pragma optiml launch balance grid(cdiv(ntr * ns, 256)) block(256)
__global__ void trace_energy(const float *d, float *energy, int ntr, int ns)
{
    int tr = threadIdx.x + blockIdx.x * blockDim.x;
    if (tr < ntr) {
        float e = 0.0f;
        for (int s = 0; s < ns; s++) e += d[tr * ns + s] * d[tr * ns + s];
        energy[tr] = e;
    }
}
__global__ void balance(const float *d, const float *energy, float *out, int ntr, int ns)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < ntr * ns) out[i] = d[i] * rsqrtf(energy[i / ns] + 1e-12f);
}
