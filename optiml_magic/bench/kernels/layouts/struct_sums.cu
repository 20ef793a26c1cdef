#define FIELDS 64

// what all trees bear, kept as an array of trees of that many fields
#pragma optiml launch struct_sums grid(cdiv(trees, 256)) block(256)
__global__ void struct_sums(const int* forest, int* out, int trees) {
    int tree = blockIdx.x * blockDim.x + threadIdx.x;
    if (tree < trees) {
        int sum = 0;
        for (int i = 0; i < FIELDS; i++) {
            sum += forest[tree * FIELDS + i];
        }
        out[tree] = sum;
    }
}
