// the neighbours of node i are columns[starts[i]] and on, sorted; a thread an edge
#pragma optiml launch jaccard grid(cdiv(edges, 256)) block(256)
__global__ void jaccard(const int* starts, const int* columns, const int* sources, float* weights,
                        int edges) {
    int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge >= edges) return;
    int one = sources[edge];
    int other = columns[edge];
    int common = 0;
    for (int k = starts[one]; k < starts[one + 1]; k++) {
        int wanted = columns[k];
        int low = starts[other];
        int high = starts[other + 1] - 1;
        while (low <= high) {
            int middle = (low + high) / 2;
            int found = columns[middle];
            if (found == wanted) {
                common++;
                break;
            }
            if (found < wanted) low = middle + 1;
            else high = middle - 1;
        }
    }
    int all = starts[one + 1] - starts[one] + starts[other + 1] - starts[other] - common;
    weights[edge] = (float)common / (float)all;
}
