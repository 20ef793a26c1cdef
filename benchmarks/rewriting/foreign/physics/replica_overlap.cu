// Overlap of replicas of a spin glass, sixty-four spins to a word: how many are alike less how many are not.
__global__ void replica_overlap(const unsigned long long *spins, float *q, int replicas, int sites)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    int a = blockIdx.y;
    if (b >= replicas) return;
    int words = sites / 64;
    int sum = 0;
    for (int s = 0; s < sites; s++) {
        int up_a = (spins[a * words + s / 64] >> (s % 64)) & 1;
        int up_b = (spins[b * words + s / 64] >> (s % 64)) & 1;
        sum += up_a == up_b ? 1 : -1;
    }
    q[a * replicas + b] = (float)sum / sites;
}
#pragma optiml launch replica_overlap grid(cdiv(replicas, 128), replicas) block(128)
