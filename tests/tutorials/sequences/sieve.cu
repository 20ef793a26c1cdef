// Every thread strikes out the multiples of one number; several may write the same 1.
#pragma optiml zero(composite)
#pragma optiml launch sieve grid(1) block(64)
__global__ void sieve(bool *composite, int limit, int root)
{
    int p = 2 + blockIdx.x * blockDim.x + threadIdx.x;
    if (p > root) return;
    for (int multiple = p * p; multiple < limit; multiple += p) composite[multiple] = true;
}
