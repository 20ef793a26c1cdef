#define DIM 3
#define MAX_K 16

// Assign each point to its nearest centre and gather sums for the update.
#pragma optiml zero(sums)
#pragma optiml zero(counts)
#pragma optiml launch assign grid(cdiv(n, 128)) block(128)
__global__ void assign(const float *points, const float *centres, int *cluster, float *sums, int *counts, int n, int k)
{
    __shared__ float c[MAX_K][DIM];
    for (int i = threadIdx.x; i < k * DIM; i += blockDim.x) c[i / DIM][i % DIM] = centres[i];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = FLT_MAX;
    int nearest = 0;
    for (int j = 0; j < k; ++j) {
        float d2 = 0;
        for (int d = 0; d < DIM; ++d) {
            float diff = points[i * DIM + d] - c[j][d];
            d2 += diff * diff;
        }
        if (d2 < best) {
            best = d2;
            nearest = j;
        }
    }
    cluster[i] = nearest;
    atomicAdd(&counts[nearest], 1);
    for (int d = 0; d < DIM; ++d) atomicAdd(&sums[nearest * DIM + d], points[i * DIM + d]);
}
