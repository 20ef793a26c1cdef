// Counts without atomics, and hopes that nobody meets.
// task: histogram
// row: 10
// rejected: wrong|race: 
#pragma optiml zero(bins)
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const int* values, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bins[values[i]] += 1;  //-
    atomicAdd(&bins[values[i]], 1);  //+
}
